#include "braid/models/training/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <system_error>

#include "braid/distributed/job/run_on_all_ranks.h"
#include "braid/models/registry.h"
#include "braid/models/training/sharded_safetensors.h"
#include "braid/nn/optim/registry.h"
#include "braid/tensor/detail/strings.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/checksum.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/safetensors.h"

namespace braid::models {

namespace fs = std::filesystem;

namespace {

constexpr const char* kManifest = "trainer/manifest.json";
constexpr const char* kWeights = "model.safetensors";
constexpr const char* kOptimizer = "trainer/optimizer.safetensors";

std::set<std::string> names_of(const io::SafetensorsFile& file) {
  std::set<std::string> names;
  for (const io::TensorInfo& t : file.tensors()) names.insert(t.name);
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

// The share of the bytes [begin, end) in the checksum of a file.
uint32_t checksum_of_slice(const fs::path& path, dist::Range slice) {
  io::Reader reader(path.string());
  reader.seek(slice.begin);
  std::vector<char> block(1 << 20);
  uint32_t crc = 0;
  for (int64_t at = slice.begin; at < slice.end;) {
    int64_t n = std::min(static_cast<int64_t>(block.size()), slice.end - at);
    reader.read(block.data(), n);
    crc = io::crc32c(block.data(), n, crc);
    at += n;
  }
  return io::crc32c_share(crc, reader.size() - slice.end);
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

// known: checksums of files that were worked out from what is in memory. The others are small and read back.
void write_manifest(const fs::path& folder, int64_t step, const std::map<std::string, uint32_t>& known) {
  nlohmann::ordered_json files = nlohmann::ordered_json::object();
  for (const std::string& name : files_below(folder)) {
    fs::path path = folder / name;
    auto bytes = static_cast<int64_t>(fs::file_size(path));
    auto at = known.find(name);
    uint32_t crc = at == known.end() ? checksum_of_slice(path, {0, bytes}) : at->second;
    files[name] = {{"bytes", bytes}, {"crc32c", hex(crc)}};
  }
  nlohmann::ordered_json manifest{{"format", 1}, {"step", step}, {"files", files}};
  io::write_file((folder / kManifest).string(), manifest.dump(1) + "\n");
}

// The exclusive or of everybody's shares.
uint32_t joined(const dist::Communicator& comm, uint32_t share) {
  uint32_t crc = 0;
  for (const std::string& text : comm.gather_text(std::to_string(share)))
    crc ^= static_cast<uint32_t>(std::stoul(text));
  return crc;
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
// step_folders() as rank 0 sees them, on all ranks.
std::vector<StepFolder> agreed_folders(const fs::path& run, const dist::Communicator& world) {
  std::string list;
  if (world.rank() == 0) {
    for (const StepFolder& f : step_folders(run)) list += std::to_string(f.step) + " ";
  }
  std::istringstream steps(world.gather_text(list)[0]);
  std::vector<StepFolder> all;
  for (int64_t step; steps >> step;) all.push_back({step, run / step_name(step)});
  return all;
}

void prune(const fs::path& run, const fs::path& newest, int64_t keep, const dist::Communicator& world) {
  std::vector<StepFolder> all = agreed_folders(run, world);
  int64_t valid = 0, most = std::max<int64_t>(keep, 2);
  if (static_cast<int64_t>(all.size()) <= most) return;
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    if (it->path == newest || why_invalid(it->path, world).empty()) ++valid;
    std::error_code ignored;
    if (valid > most && world.rank() == 0) fs::remove_all(it->path, ignored);
  }
}
}  // namespace

void save_checkpoint(const fs::path& run, const Trainer& trainer, const text::Tokenizer* tokenizer,
                     const RunState& state, const std::string& settings, int64_t keep) {
  const dist::Communicator& world = trainer.mesh().world;
  const bool root = world.rank() == 0;
  OwnedState owned = trainer.owned_state();
  dist::run_on_all_ranks(world, [&] {
    for (const OwnedTensor& w : owned.weights) {
      check(!w.numbers || nn::all_finite(w.numbers), ErrorKind::numerical, [&] {
        return w.name + " contains NaN or Inf at step " + std::to_string(state.step) + "; no checkpoint was written";
      });
    }
  });
  const fs::path final_path = run / step_name(state.step), building = final_path.string() + ".tmp";
  SharedTensors weights(building / kWeights, owned.weights, {{"format", "pt"}});
  SharedTensors optimizer(building / kOptimizer, owned.optimizer);
  RemovedUnlessKept unfinished;  // on a full disk it would only keep others from writing

  dist::run_on_all_ranks(world, [&] {
    if (!root) return;
    remove_unfinished(run);
    make_folder(building / "trainer");
    unfinished.path = building;
    save_model_description(*trainer.model().spec(), tokenizer, building);
    nlohmann::ordered_json json{{"step", state.step},           {"samples", state.samples},
                                {"elapsed_s", state.elapsed_s}, {"seed", state.seed},
                                {"seq_len", state.seq_len},     {"data_fingerprint", state.data_fingerprint}};
    for (size_t i = 0; i < kMemoryUses; ++i)
      json["peak_memory_bytes"][name(static_cast<MemoryUse>(i))] = state.memory.at_peak[i];
    io::write_file((building / "trainer/state.json").string(), json.dump(1) + "\n");
    io::write_file((building / kSettingsFile).string(), settings);
    weights.make();
    optimizer.make();
  });
  dist::run_on_all_ranks(world, [&] {  // all ranks at once
    try {
      weights.write();
      optimizer.write();
    } catch (const Error& e) {
      fail(e.kind(), std::string(e.what()) + "; older checkpoints are intact");
    }
  });
  std::map<std::string, uint32_t> checksums{{kWeights, joined(world, weights.share())},
                                            {kOptimizer, joined(world, optimizer.share())}};
  dist::run_on_all_ranks(world, [&] {
    if (!root) return;
    write_manifest(building, state.step, checksums);
    io::sync_directory((building / "trainer").string());
    io::sync_directory(building.string());
    std::error_code error;
    fs::remove_all(final_path, error);  // an invalid one of the same step; a valid one would have been resumed from
    fs::rename(building, final_path, error);
    if (error) cannot("put the checkpoint in place at", final_path, error);
    unfinished.path.clear();
    io::sync_directory(run.string());
  });
  std::string wrong = why_invalid(final_path, world);
  dist::run_on_all_ranks(world, [&] {
    check(wrong.empty(), ErrorKind::output, [&] {
      return "the checkpoint " + final_path.string() + " does not read back as written: " + wrong +
             "; older checkpoints are intact";
    });
    if (root) io::write_file((run / "latest").string(), step_name(state.step) + "\n");
  });
  prune(run, final_path, keep, world);
}

namespace {
struct ListedFile {
  std::string name, crc32c;
  uint64_t bytes = 0;
};

std::vector<ListedFile> read_manifest(const fs::path& checkpoint) {
  nlohmann::json manifest = io::read_json_file((checkpoint / kManifest).string(), 16 << 20);
  const bool lists = manifest.is_object() && manifest.contains("files") && manifest["files"].is_object();
  check(lists, ErrorKind::input, [] { return std::string("its manifest lists no files"); });
  std::vector<ListedFile> files;
  for (const auto& [name, entry] : manifest["files"].items())
    files.push_back({name, entry.at("crc32c").get<std::string>(), entry.at("bytes").get<uint64_t>()});
  for (const char* needed : {"config.json", kWeights, kOptimizer, "trainer/state.json"}) {
    check(manifest["files"].contains(needed), ErrorKind::input,
          [&] { return std::string("its manifest does not list ") + needed; });
  }
  return files;
}
}  // namespace

std::string why_invalid(const fs::path& checkpoint, const dist::Communicator& world) {
  // Each rank reads its slice of every file. It says what is wrong, or the shares of its slices in the checksums.
  std::vector<ListedFile> files;
  std::string mine;
  try {
    files = read_manifest(checkpoint);
    std::string shares;
    for (const ListedFile& file : files) {
      fs::path path = checkpoint / file.name;
      std::error_code error;
      auto bytes = fs::file_size(path, error);
      check(!error, ErrorKind::input, [&] { return file.name + " is missing"; });
      check(bytes == file.bytes, ErrorKind::input, [&] {
        return file.name + " has " + std::to_string(bytes) + " bytes, expected " + std::to_string(file.bytes);
      });
      dist::Partition slices = dist::even_partition(static_cast<int64_t>(bytes), world.size());
      shares += " " + std::to_string(checksum_of_slice(path, slices.single(world.rank())));
    }
    mine = shares;
  } catch (const Error& e) {
    mine = e.what();
  } catch (const nlohmann::json::exception& e) {
    mine = std::string("its manifest cannot be read: ") + e.what();
  }
  std::vector<uint32_t> crcs(files.size());
  std::vector<std::string> all = world.gather_text(mine);
  for (const std::string& text : all) {
    if (text.empty() || text[0] != ' ') return text;
    std::istringstream shares(text);
    uint32_t share = 0;
    for (size_t i = 0; shares >> share; ++i) crcs.at(i) ^= share;
  }
  for (size_t i = 0; i < files.size(); ++i) {
    if (hex(crcs[i]) != files[i].crc32c)
      return files[i].name + " has checksum " + hex(crcs[i]) + ", expected " + files[i].crc32c;
  }
  return "";
}

StepFolder newest_checkpoint(const fs::path& run, std::vector<std::string>& notes, const dist::Communicator& world) {
  std::vector<StepFolder> all = agreed_folders(run, world);
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    std::string wrong = why_invalid(it->path, world);
    if (wrong.empty()) return *it;
    notes.push_back("checkpoint " + it->path.string() + " is damaged and was passed over: " + wrong);
  }
  dist::run_on_all_ranks(world, [&] {
    check(all.empty(), ErrorKind::no_checkpoint, [&] {
      return "none of the " + std::to_string(all.size()) + " checkpoints in " + run.string() +
             " is usable (the newest: " + notes.front() +
             "); restore one from a copy, or move the folder away to start anew";
    });
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
  std::string config_file = (checkpoint / "config.json").string();
  std::vector<std::string> changed = differing_settings(
      *read_model_spec(io::read_text_file(config_file, 1 << 20), config_file), *trainer.model().spec());
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
  io::SafetensorsFile weights((checkpoint / kWeights).string()), state((checkpoint / kOptimizer).string());
  // The checkpoint is valid, so tensors of another kind mean other settings, not a damaged file.
  const std::vector<nn::NamedTensor>& own = trainer.parameters();
  DType dtype = own.at(0).value.dtype();
  check(weights.tensors().empty() || weights.tensors()[0].dtype == dtype, ErrorKind::setting, [&] {
    return "the arithmetic is not that of " + weights.path() +
           ": expected train.dtype = " + str(weights.tensors()[0].dtype) + ", found " + str(dtype) +
           "; undo the change or choose another run.out";
  });
  std::set<std::string> expected{"steps"};
  for (const nn::NamedTensor& p : own) {
    for (const std::string& ending : nn::state_suffixes(trainer.optimizer().options()))
      expected.insert(p.name + ending);
  }
  check(names_of(state) == expected, ErrorKind::setting, [&] {
    return "the state in " + state.path() +
           " is of another optimizer: expected the same optimizer.name and optimizer.momentum as when the run began; "
           "undo the change or choose another run.out";
  });
  trainer.load(weights, state);
}

}  // namespace braid::models
