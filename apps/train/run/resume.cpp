#include "apps/train/run/resume.h"

#include <sstream>

#include "apps/cli/text.h"
#include "apps/train/run/job.h"
#include "apps/train/run/run_status.h"
#include "apps/train/task/from_config.h"
#include "braid/distributed/job/run_on_all_ranks.h"
#include "braid/models/registry.h"
#include "braid/nn/optim/registry.h"
#include "braid/tensor/io/reader.h"

namespace braid::apps {
namespace {

namespace fs = std::filesystem;

// The settings in which the file of a checkpoint differs, as "train.batch_size: 8 -> 16"; not the run's folder, which
// may have been moved, and not the model's, which load_checkpoint() compares (the file has its derived values
// too). `saved` gets the settings of the file.
std::vector<std::string> changed_settings(const fs::path& file, const Schema& now, TrainConfig& saved) {
  const Schema then = train_schema(saved, model_settings());
  load_config(then, file, {});
  std::vector<std::string> changed = differences(then, now);
  std::erase_if(changed,
                [](const std::string& line) { return line.starts_with("run.out:") || line.starts_with("model."); });
  return changed;
}

void check_same_data(const TrainConfig& config, const TrainConfig& before, const fs::path& checkpoint,
                     const models::RunState& saved, const models::RunState& start) {
  check(saved.data_fingerprint == start.data_fingerprint, ErrorKind::setting, [&] {
    return "the data in " + config.data.path + " is not what " + checkpoint.string() +
           " was trained on: expected data.path = " + before.data.path + " with fingerprint " + saved.data_fingerprint +
           ", found fingerprint " + start.data_fingerprint + "; restore the data or choose another run.out";
  });
  const auto check_same = [&](const char* key, int64_t then, int64_t now) {
    check(then == now, ErrorKind::setting, [&] {
      return str(key, " differs from the run in ", config.run.out, ": expected ", then, ", found ", now,
                 "; undo the change or choose another run.out");
    });
  };
  check_same("run.seed", saved.seed, start.seed);
  check_same("data.seq_len", saved.seq_len, start.seq_len);
}

// LoRA is part of the model that is trained, but not of its settings.
void check_same_lora(const TrainConfig& config, const std::vector<std::string>& changed) {
  for (const std::string& line : changed) {
    check(!line.starts_with("lora."), ErrorKind::setting, [&] {
      return "LoRA differs from the run in " + config.run.out + " (" + line +
             "); undo the change, choose another run.out, or continue from this run with train.init_from=" +
             config.run.out;
    });
  }
}

void check_same_optimizer(const TrainConfig& config, const TrainConfig& before, const fs::path& checkpoint,
                          std::vector<std::string> changed) {
  const auto moments = [](const TrainConfig& c) { return nn::state_suffixes(optimizer_options(c)).size(); };
  check(moments(before) == moments(config) && before.optimizer.name == config.optimizer.name, ErrorKind::setting, [&] {
    std::erase_if(changed, [](const std::string& line) {
      return !line.starts_with("optimizer.name:") && !line.starts_with("optimizer.momentum:");
    });
    return "the optimizer state in " + checkpoint.string() + " is of another kind (" + join(changed, ", ") +
           "); undo the change or choose another run.out";
  });
}

}  // namespace

int64_t check_resumable(const TrainConfig& config, const Schema& schema, const models::ModelSpec& model,
                        const models::RunState& start) {
  const std::vector<models::StepFolder> folders = models::step_folders(config.run.out);
  if (folders.empty()) return 0;
  const fs::path newest = folders.back().path;
  models::check_same_model(newest, model);
  TrainConfig before;
  const models::RunState saved = models::read_state(newest);
  const std::vector<std::string> changed = changed_settings(newest / models::kSettingsFile, schema, before);
  check_same_data(config, before, newest, saved, start);
  check_same_lora(config, changed);
  check_same_optimizer(config, before, newest, changed);
  check(arithmetic(before).masters == arithmetic(config).masters, ErrorKind::setting, [&] {
    return "the arithmetic is not that of " + newest.string() + ": expected train.dtype = " + before.train.dtype +
           ", found " + config.train.dtype + "; undo the change or choose another run.out";
  });
  return saved.step;
}

// A changed number of processes, which the settings do not show where parallel.data = 0 takes the rest of them.
static std::vector<std::string> changed_processes(const fs::path& run, int64_t now) {
  try {
    const std::optional<RunStatus> status = read_status(run);
    if (status && status->processes > 0 && status->processes != now)
      return {str("processes: ", status->processes, " -> ", now)};
  } catch (const Error&) {  // damaged: it is written anew
  }
  return {};
}

models::RunState resume(const TrainConfig& config, const Schema& schema, const models::RunState& start,
                        models::Trainer& trainer, Progress& progress) {
  const dist::Communicator& world = trainer.mesh().world;
  std::vector<std::string> notes;
  const fs::path newest = models::newest_checkpoint(config.run.out, notes, world).path;
  for (const std::string& note : notes) progress.note("note: " + note);
  models::RunState saved;
  dist::run_on_all_ranks(world, [&] {
    if (!newest.empty()) saved = models::read_state(newest);
  });
  std::vector<dist::RankProperty> properties{{"program (checksum)", program_fingerprint()}};
  std::istringstream lines(print_config(schema));
  for (std::string line; std::getline(lines, line);) properties.push_back({"setting", line});
  properties.push_back({"data fingerprint", start.data_fingerprint});
  properties.push_back({"checkpoint step", std::to_string(saved.step)});
  dist::check_ranks_agree(world, properties);
  if (newest.empty()) return start;

  TrainConfig before;
  std::vector<std::string> changed = changed_settings(newest / models::kSettingsFile, schema, before);
  check_same_data(config, before, newest, saved, start);
  check_same_lora(config, changed);
  check_same_optimizer(config, before, newest, changed);
  for (const std::string& line : changed_processes(config.run.out, world.size())) changed.push_back(line);
  models::load_checkpoint(newest, trainer);
  progress.note("resuming from " + newest.string() + (changed.empty() ? "" : " with other settings:"));
  for (const std::string& line : changed) progress.note("  " + line);
  return saved;
}

}  // namespace braid::apps
