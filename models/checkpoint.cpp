#include "models/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "distributed/agree.h"
#include "models/config_keys.h"
#include "tensor/io/atomic_file.h"
#include "tensor/io/checksum.h"
#include "tensor/io/json.h"
#include "tensor/io/safetensors.h"
#include "tensor/text.h"

namespace braid::models {

namespace fs = std::filesystem;

namespace {

constexpr const char* kManifest = "trainer/manifest.json";

io::NamedTensors pairs(const std::vector<nn::NamedTensor>& tensors) {
  io::NamedTensors out;
  for (const nn::NamedTensor& t : tensors) out.emplace_back(t.name, t.value);
  return out;
}

std::vector<nn::NamedTensor> read_all(const fs::path& path) {
  io::TensorFiles file(path.string());
  std::vector<nn::NamedTensor> out;
  for (const io::TensorInfo& info : file.tensors()) out.push_back({info.name, file.load(info.name)});
  return out;
}

std::set<std::string> names_of(const std::vector<nn::NamedTensor>& tensors) {
  std::set<std::string> names;
  for (const nn::NamedTensor& t : tensors) names.insert(t.name);
  return names;
}

[[noreturn]] void cannot(const char* doing, const fs::path& path, const std::error_code& error) {
  fail(ErrorKind::output, std::string("cannot ") + doing + " " + path.string() + ": " + error.message() +
                              "; older checkpoints are intact");
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) cannot("create the folder", path, error);
}

struct RemovedUnlessKept {
  fs::path path;
  ~RemovedUnlessKept() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

// What runs that were killed while saving have left over.
void remove_unfinished(const fs::path& run) {
  std::error_code ignored;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(run, ignored)) {
    std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && name.ends_with(".tmp")) found.push_back(entry.path());
  }
  for (const fs::path& path : found) fs::remove_all(path, ignored);
}

uint32_t file_checksum(const fs::path& path) {
  io::Reader reader(path.string());
  std::vector<char> block(1 << 20);
  uint32_t crc = 0;
  while (int64_t n = reader.read_some(block.data(), static_cast<int64_t>(block.size())))
    crc = io::crc32c(block.data(), n, crc);
  return crc;
}

std::string hex(uint32_t x) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", x);
  return text;
}

// Every regular file below `folder` but the manifest, by relative path.
std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::string name = fs::relative(entry.path(), folder).generic_string();
    if (name != kManifest) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void write_manifest(const fs::path& folder, int64_t step) {
  nlohmann::ordered_json files = nlohmann::ordered_json::object();
  for (const std::string& name : files_below(folder)) {
    fs::path path = folder / name;
    files[name] = {{"bytes", fs::file_size(path)}, {"crc32c", hex(file_checksum(path))}};
  }
  nlohmann::ordered_json manifest{{"format", 1}, {"step", step}, {"files", files}};
  io::write_file((folder / kManifest).string(), manifest.dump(1) + "\n");
}

}  // namespace

std::string step_name(int64_t step) {
  char text[32];
  std::snprintf(text, sizeof text, "step-%08lld", static_cast<long long>(step));
  return text;
}

std::vector<StepFolder> step_folders(const fs::path& run) {
  std::vector<StepFolder> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(run, none)) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with("step-") || !entry.is_directory(none)) continue;
    int64_t step = -1;
    auto [end, error] = std::from_chars(name.data() + 5, name.data() + name.size(), step);
    if (error == std::errc() && end == name.data() + name.size() && step >= 0 && name == step_name(step))
      found.push_back({step, entry.path()});
  }
  std::sort(found.begin(), found.end(), [](const StepFolder& a, const StepFolder& b) { return a.step < b.step; });
  return found;
}

namespace {
void write_checkpoint(const fs::path& run, const ModelConfig& config, const WholeState& whole,
                      const text::Tokenizer& tokenizer, const RunState& state, const std::string& settings,
                      int64_t keep) {
  for (const nn::NamedTensor& p : whole.weights) {
    check(nn::all_finite(p.value), ErrorKind::numerical, [&] {
      return p.name + " contains NaN or Inf at step " + std::to_string(state.step) + "; no checkpoint was written";
    });
  }
  fs::path final_path = run / step_name(state.step), building = final_path.string() + ".tmp";
  std::error_code error;
  remove_unfinished(run);
  make_folder(building / "trainer");
  RemovedUnlessKept unfinished{building};  // on a full disk it would only keep others from writing
  save_model(config, whole.weights, tokenizer, building);
  io::save_safetensors((building / "trainer/optimizer.safetensors").string(), pairs(whole.optimizer));
  nlohmann::ordered_json json{{"step", state.step},           {"samples", state.samples},
                              {"elapsed_s", state.elapsed_s}, {"seed", state.seed},
                              {"seq_len", state.seq_len},     {"data_fingerprint", state.data_fingerprint}};
  for (size_t i = 0; i < kMemoryUses; ++i)
    json["peak_memory_bytes"][name(static_cast<MemoryUse>(i))] = state.memory.at_peak[i];
  io::write_file((building / "trainer/state.json").string(), json.dump(1) + "\n");
  io::write_file((building / kSettingsFile).string(), settings);
  write_manifest(building, state.step);
  io::sync_directory((building / "trainer").string());
  io::sync_directory(building.string());
  fs::remove_all(final_path, error);  // an invalid one of the same step; a valid one would have been resumed from
  fs::rename(building, final_path, error);
  if (error) cannot("put the checkpoint in place at", final_path, error);
  unfinished.path.clear();
  io::sync_directory(run.string());

  std::string wrong = why_invalid(final_path);
  check(wrong.empty(), ErrorKind::output, [&] {
    return "the checkpoint " + final_path.string() + " does not read back as written: " + wrong +
           "; older checkpoints are intact";
  });
  io::write_file((run / "latest").string(), step_name(state.step) + "\n");
  std::vector<StepFolder> all = step_folders(run);
  int64_t valid = 0;
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    if (it->path == final_path || why_invalid(it->path).empty()) ++valid;
    if (valid > std::max<int64_t>(keep, 2)) fs::remove_all(it->path, error);
  }
}
}  // namespace

void save_checkpoint(const fs::path& run, const Trainer& trainer, const text::Tokenizer& tokenizer,
                     const RunState& state, const std::string& settings, int64_t keep) {
  const dist::Communicator& world = trainer.layout().world;
  WholeState whole = trainer.whole_state();
  dist::agree(world, [&] {
    if (world.rank() == 0) write_checkpoint(run, trainer.model().config(), whole, tokenizer, state, settings, keep);
  });
}

std::string why_invalid(const fs::path& checkpoint) {
  try {
    fs::path manifest_path = checkpoint / kManifest;
    nlohmann::json manifest = io::read_json_file(manifest_path.string(), 16 << 20);
    if (!manifest.is_object() || !manifest.contains("files") || !manifest["files"].is_object())
      return "its manifest lists no files";
    for (const auto& [name, entry] : manifest["files"].items()) {
      fs::path path = checkpoint / name;
      std::error_code error;
      auto bytes = fs::file_size(path, error);
      if (error) return name + " is missing";
      if (bytes != entry.at("bytes").get<uint64_t>()) {
        return name + " has " + std::to_string(bytes) + " bytes, expected " +
               std::to_string(entry.at("bytes").get<uint64_t>());
      }
      std::string crc = hex(file_checksum(path)), expected = entry.at("crc32c").get<std::string>();
      if (crc != expected) return name + " has checksum " + crc + ", expected " + expected;
    }
    for (const char* needed :
         {"config.json", "model.safetensors", "trainer/optimizer.safetensors", "trainer/state.json"}) {
      if (!manifest["files"].contains(needed)) return std::string("its manifest does not list ") + needed;
    }
    return "";
  } catch (const Error& e) {
    return e.what();
  } catch (const nlohmann::json::exception& e) {
    return std::string("its manifest cannot be read: ") + e.what();
  }
}

StepFolder newest_checkpoint(const fs::path& run, std::vector<std::string>& notes) {
  std::vector<StepFolder> all = step_folders(run);
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    std::string wrong = why_invalid(it->path);
    if (wrong.empty()) return *it;
    notes.push_back("checkpoint " + it->path.string() + " is damaged and was passed over: " + wrong);
  }
  check(all.empty(), ErrorKind::no_checkpoint, [&] {
    return "none of the " + std::to_string(all.size()) + " checkpoints in " + run.string() +
           " is usable (the newest: " + notes.front() +
           "); restore one from a copy, or move the folder away to start anew";
  });
  return {};
}

RunState read_state(const fs::path& checkpoint) {
  std::string path = (checkpoint / "trainer/state.json").string();
  nlohmann::json json = io::read_json_file(path, 1 << 20);
  try {
    return {json.at("step").get<int64_t>(),     json.at("samples").get<int64_t>(),
            json.at("elapsed_s").get<double>(), json.at("seed").get<int64_t>(),
            json.at("seq_len").get<int64_t>(),  json.at("data_fingerprint").get<std::string>()};
  } catch (const nlohmann::json::exception& e) {
    fail(ErrorKind::input, "cannot read where the run stands in " + path + ": " + e.what() +
                               "; another version of braid may have written it: choose another run.out to start anew");
  }
}

void load_checkpoint(const fs::path& checkpoint, Trainer& trainer) {
  const ModelConfig& config = trainer.model().config();
  std::string config_file = (checkpoint / "config.json").string();
  ModelConfig saved = read_config(io::read_text_file(config_file, 1 << 20), config_file);
  finish(saved);
  std::vector<std::string> changed;
  for (const ConfigKey& key : key_table()) {
    std::string then = key_text(key, saved), now = key_text(key, config);
    if (then != now) changed.push_back("model." + key.name + " = " + then + ", found " + now);
  }
  check(changed.empty(), ErrorKind::setting, [&] {
    constexpr size_t most = 4;  // the first ones are the plain sizes, others often follow from them
    if (changed.size() > most) {
      std::string more = "and " + std::to_string(changed.size() - most) + " more";
      changed.resize(most);
      changed.push_back(more);
    }
    return "the model in " + checkpoint.string() + " is not the configured one: expected " + join(changed, "; ") +
           "; undo the change or choose another run.out";
  });
  std::string model_file = (checkpoint / "model.safetensors").string();
  std::string state_file = (checkpoint / "trainer/optimizer.safetensors").string();
  WholeState state{read_all(model_file), read_all(state_file)};
  // The checkpoint is valid, so tensors of another kind mean other settings, not a damaged file.
  const std::vector<nn::NamedTensor>& own = trainer.parameters();
  DType dtype = own.at(0).value.dtype();
  check(state.weights.empty() || state.weights[0].value.dtype() == dtype, ErrorKind::setting, [&] {
    return "the arithmetic is not that of " + model_file +
           ": expected train.dtype = " + str(state.weights[0].value.dtype()) + ", found " + str(dtype) +
           "; undo the change or choose another run.out";
  });
  std::set<std::string> expected{"steps"};
  for (const nn::NamedTensor& p : own) {
    for (const std::string& ending : nn::state_endings(trainer.optimizer().options())) expected.insert(p.name + ending);
  }
  check(names_of(state.optimizer) == expected, ErrorKind::setting, [&] {
    return "the state in " + state_file +
           " is of another optimizer: expected the same optimizer.name and optimizer.momentum as when the run began; "
           "undo the change or choose another run.out";
  });
  trainer.load(state, model_file, state_file);
}

}  // namespace braid::models
