#include "braid/models/training/checkpoint/checkpoint.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "braid/distributed/job/run_on_all_ranks.h"
#include "braid/models/folders/adapter.h"
#include "braid/models/registry.h"
#include "braid/models/training/checkpoint/manifest.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/io/reader.h"
#include "braid/tensor/io/safetensors.h"

namespace braid::models {

namespace fs = std::filesystem;

namespace {
std::set<std::string> names_of(const io::SafetensorsFile& file) {
  std::set<std::string> names;
  for (const io::TensorInfo& t : file.tensors()) names.insert(t.name);
  return names;
}

std::optional<std::string> damage_or_advice(const fs::path& checkpoint, const dist::Communicator& world) {
  try {
    return find_damage(checkpoint, world);
  } catch (const Error& e) {  // on all ranks
    throw dist::CollectiveError(e.kind(), str(e.what(), "; it may not be damaged: try again, or move ",
                                              checkpoint.string(), " away to take the checkpoint before it"));
  }
}
}  // namespace

std::string step_name(int64_t step) {
  char text[32];
  std::snprintf(text, sizeof text, "step-%08lld", static_cast<long long>(step));
  return text;
}

std::optional<int64_t> step_of_name(const std::string& name) {
  if (!name.starts_with("step-")) return std::nullopt;
  const std::optional<int64_t> step = detail::parse_int(std::string_view(name).substr(5));
  return step && *step >= 0 && name == step_name(*step) ? step : std::nullopt;
}

std::optional<int64_t> named_step(const fs::path& file) {
  if (!io::is_file(file)) return std::nullopt;
  constexpr int64_t max_bytes = 1 << 20;
  const std::string text = io::read_text_file(file.string(), max_bytes);
  return step_of_name(text.substr(0, text.find('\n')));
}

std::vector<StepFolder> step_folders(const fs::path& run) {
  std::vector<StepFolder> found;
  for (const fs::path& path : io::list_folder(run)) {
    const std::optional<int64_t> step = step_of_name(path.filename().string());
    if (step && io::is_folder(path)) found.push_back({*step, path});
  }
  std::sort(found.begin(), found.end(), [](const StepFolder& a, const StepFolder& b) { return a.step < b.step; });
  return found;
}

std::vector<StepFolder> step_folders(const fs::path& run, const dist::Communicator& world) {
  std::string list;
  dist::run_on_all_ranks(world, [&] {
    if (world.rank() != 0) return;
    for (const StepFolder& f : step_folders(run)) list += str(f.step, " ");
  });
  std::istringstream steps(world.gather_text(list)[0]);
  std::vector<StepFolder> all;
  for (int64_t step; steps >> step;) all.push_back({step, run / step_name(step)});
  return all;
}

StepFolder newest_checkpoint(const fs::path& run, std::vector<std::string>& notes, const dist::Communicator& world) {
  std::vector<StepFolder> all = step_folders(run, world);
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    const std::optional<std::string> damage = damage_or_advice(it->path, world);
    if (!damage) return *it;
    notes.push_back("checkpoint " + it->path.string() + " is damaged and was passed over: " + *damage);
  }
  dist::run_on_all_ranks(world, [&] {
    check(!all.empty() || !io::exists(run / kLatestFile), ErrorKind::no_checkpoint, [&] {
      return "no checkpoint is left in " + run.string() + ", whose file " + kLatestFile +
             " names one; restore it from a copy, or move the folder away to start anew";
    });
    check(all.empty(), ErrorKind::no_checkpoint, [&] {
      return str("none of the ", all.size(), " checkpoints in ", run.string(),
                 " is usable (the newest: ", notes.front(),
                 "); restore one from a copy, or move the folder away to start anew");
    });
  });
  return {};
}

RunState read_state(const fs::path& checkpoint) {
  std::string path = (checkpoint / kStateFile).string();
  nlohmann::json json = io::read_json_file(path, 1 << 20);
  try {
    std::vector<EarlierLength> earlier;
    for (const nlohmann::json& length : json.value("earlier_lengths", nlohmann::json::array()))
      earlier.push_back({length.at("seq_len").get<int64_t>(), length.at("sequences").get<int64_t>()});
    check(std::ranges::all_of(earlier, [](const auto& e) { return e.seq_len >= 1 && e.sequences >= 1; }),
          ErrorKind::input, [&] { return "bad earlier_lengths in " + path + ": expected lengths and counts above 0"; });
    return {.step = json.at("step").get<int64_t>(),
            .samples = json.at("samples").get<int64_t>(),
            .elapsed_s = json.at("elapsed_s").get<double>(),
            .seed = json.at("seed").get<int64_t>(),
            .seq_len = json.at("seq_len").get<int64_t>(),
            .data_fingerprint = json.at("data_fingerprint").get<std::string>(),
            .measured = json.value("measured", true),
            .val_loss = json.value("val_loss", std::numeric_limits<double>::quiet_NaN()),
            .comparable_after = json.value("comparable_after", int64_t{0}),
            .earlier = std::move(earlier)};
  } catch (const nlohmann::json::exception& e) {
    fail(ErrorKind::input, "cannot read where the run stands in " + path + ": " + e.what() +
                               "; another version of braid may have written it: choose another run.out to start anew");
  }
}

RunState with_length(RunState state, int64_t seq_len) {
  if (seq_len == state.seq_len) return state;
  int64_t sequences = state.samples;  // of the length so far
  for (const EarlierLength& before : state.earlier) sequences -= before.sequences;
  if (sequences > 0) state.earlier.push_back({state.seq_len, sequences});
  state.seq_len = seq_len;
  if (!state.earlier.empty() && state.earlier.back().seq_len == seq_len) state.earlier.pop_back();
  return state;
}

void check_same_model(const fs::path& checkpoint, const ModelSpec& model) {
  std::string config_file = (checkpoint / "config.json").string();
  const auto saved = read_model_spec(io::read_text_file(config_file, 1 << 20), config_file);
  const std::vector<SettingDifference> differences = setting_differences(*saved, model);
  const bool of_context = std::ranges::all_of(differences, &SettingDifference::of_context);
  const bool may_change = of_context && saved->max_sequence_length() != model.max_sequence_length();
  check(differences.empty() || may_change, ErrorKind::setting, [&] {
    std::vector<std::string> changed;
    for (const SettingDifference& d : differences) changed.push_back(d.text());
    constexpr size_t max_listed = 4;  // the first ones are the plain sizes, others often follow from them
    if (changed.size() > max_listed) {
      std::string more = str("and ", changed.size() - max_listed, " more");
      changed.resize(max_listed);
      changed.push_back(more);
    }
    return "the model in " + checkpoint.string() + " is not the configured one: expected " +
           detail::join(changed, "; ") + (of_context ? " (it may change together with the longest sequence)" : "") +
           "; undo the change or choose another run.out";
  });
}

void load_checkpoint(const fs::path& checkpoint, Trainer& trainer) {
  check_same_model(checkpoint, *trainer.model().spec());
  io::SafetensorsFile weights((checkpoint / kWeightsFile).string()), state((checkpoint / kOptimizerFile).string());
  // The checkpoint is valid, so tensors of another kind mean other settings, not a damaged file.
  const std::vector<nn::NamedTensor>& own = trainer.parameters();
  const auto narrower = [](DType a, DType b) { return size_of(a) < size_of(b) ? a : b; };
  DType there = DType::f64, here = DType::f64;  // beside bf16 some stay f32 (hold_in_16_bits.h)
  for (const io::TensorInfo& t : weights.tensors()) there = narrower(there, t.dtype);
  for (const nn::NamedTensor& p : own) here = narrower(here, p.value.dtype());
  check(weights.tensors().empty() || there == here, ErrorKind::setting, [&] {
    const bool narrow = there == DType::bf16 || here == DType::bf16;
    return str("the arithmetic is not that of ", weights.path(), ": expected ",
               narrow ? "weights in " : "train.dtype = ", there, ", found ", here, narrow ? " (train.rounding)" : "",
               "; undo the change or choose another run.out");
  });
  std::set<std::string> expected{"steps"};
  for (const nn::NamedTensor& p : own) {
    for (const std::string& name : trainer.state_names(p)) expected.insert(name);
  }
  std::set<std::string> found = names_of(state);
  std::erase_if(found, [](const std::string& name) { return name.ends_with(Trainer::kUnaveraged); });
  check(found == expected, ErrorKind::setting, [&] {
    return "the state in " + state.path() +
           " is of another optimizer: expected the same optimizer.name, optimizer.momentum, matrices and never trained "
           "parameters (optimizer.groups, lora.*) as when the run began; undo the change or choose another run.out";
  });
  std::optional<io::SafetensorsFile> adapter;
  if (has_adapter(checkpoint)) adapter.emplace((checkpoint / kAdapterFile).string());
  try {
    trainer.load(weights, state, adapter ? &*adapter : nullptr);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::input || dynamic_cast<const io::SystemError*>(&e)) throw;
    fail(e.kind(), str(e.what(), "; move ", checkpoint.string(), " away to resume from an older one"));
  }
}

}  // namespace braid::models
