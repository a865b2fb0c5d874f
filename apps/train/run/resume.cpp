#include "apps/train/run/resume.h"

#include <sstream>

#include "apps/cli/text.h"
#include "apps/train/config/data_sources.h"
#include "apps/train/config/origin.h"
#include "apps/train/run/job.h"
#include "apps/train/run/run_status.h"
#include "apps/train/task/from_config.h"
#include "apps/train/task/task.h"
#include "braid/distributed/job/run_on_all_ranks.h"
#include "braid/models/registry.h"
#include "braid/nn/optim/registry.h"
#include "braid/tensor/io/reader.h"

namespace braid::apps {
namespace {

namespace fs = std::filesystem;

// The settings in which the file of a checkpoint differs, as "train.batch_size: 8 -> 16"; not the run's folder, which
// may have been moved.
struct Changed {
  TrainConfig before;
  std::vector<std::string> lines;
  std::vector<std::string> model;  // of the model, of which the file also has derived values
};

Changed changed_settings(const fs::path& file, const Schema& now) {
  Changed changed;
  const Schema then = train_schema(changed.before, model_settings());
  load_config(then, file, {});
  for (const std::string& line : differences(then, now)) {
    const bool of_model = line.starts_with("model.") && !line.starts_with("model.dropout:");
    if (!line.starts_with("run.out:")) (of_model ? changed.model : changed.lines).push_back(line);
  }
  return changed;
}

// What else the user can do than to undo a change.
std::string ways_out(const TrainConfig& config) {
  return " or choose another run.out, where train.init_from=" + config.run.out + " starts from these weights";
}

// Names the settings that were given, from which those that differ may follow.
void check_same_model(const TrainConfig& config, const fs::path& checkpoint, const models::ModelSpec& model,
                      const Changed& changed) {
  try {
    models::check_same_model(checkpoint, model);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::setting) throw;
    std::vector<std::string> given;
    for (const std::string& line : changed.model)
      if (!line.ends_with(" -> not set")) given.push_back(line);
    fail(e.kind(), str(e.what(), ", where train.init_from=", config.run.out, " starts from these weights",
                       given.empty() ? "" : "; changed: " + join(given, ", ")));
  }
}

// A longer or shorter context: what changes with it.
std::vector<std::string> context_lines(const fs::path& checkpoint, const models::ModelSpec& model,
                                       const models::RunState& saved, int64_t seq_len) {
  std::vector<std::string> lines;
  for (const models::SettingDifference& d : models::setting_differences(*model_in(checkpoint), model))
    lines.push_back("model." + d.name + ": " + d.expected + " -> " + d.found);
  if (saved.seq_len != seq_len) lines.push_back(str("context ", saved.seq_len, " -> ", seq_len));
  return lines;
}

std::string data_text(const TrainConfig& config, const std::string& fingerprint) {
  const bool mixed = !config.data.sources.empty();
  return (mixed ? "data.sources = " + toml_text(config.data.sources) : "data.path = " + config.data.path) +
         " with fingerprint " + fingerprint;
}

void check_same_data(const TrainConfig& config, const TrainConfig& before, const TrainingTask& task,
                     const fs::path& checkpoint, const models::RunState& saved, const models::RunState& start) {
  check(task.continues(before, saved), ErrorKind::setting, [&] {
    const bool mixed = !before.data.sources.empty() && !config.data.sources.empty();
    return "the data in " + join(data_folders(config), " and ") + " is not what " + checkpoint.string() +
           " was trained on: expected " + data_text(before, saved.data_fingerprint) + ", found " +
           data_text(config, start.data_fingerprint) + "; restore the data and their settings" +
           (mixed ? str(", change weights only from a later block than that of sequence ", saved.samples) : "") +
           ways_out(config);
  });
  check(saved.seed == start.seed, ErrorKind::setting, [&] {
    return str("run.seed differs from the run in ", config.run.out, ": expected ", saved.seed, ", found ", start.seed,
               "; undo the change", ways_out(config));
  });
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
           "); undo the change" + ways_out(config);
  });
}

void check_same_run(const TrainConfig& config, const fs::path& checkpoint, const Changed& changed,
                    const models::ModelSpec& model, const TrainingTask& task, const models::RunState& saved,
                    const models::RunState& start) {
  check_same_model(config, checkpoint, model, changed);
  check_same_data(config, changed.before, task, checkpoint, saved, start);
  check_same_lora(config, changed.lines);
  check_same_optimizer(config, changed.before, checkpoint, changed.lines);
}

}  // namespace

int64_t check_resumable(const TrainConfig& config, const Schema& schema, const models::ModelSpec& model,
                        const TrainingTask& task, const models::RunState& start) {
  const std::vector<models::StepFolder> folders = models::step_folders(config.run.out);
  if (folders.empty()) return 0;
  const fs::path newest = folders.back().path;
  const models::RunState saved = models::read_state(newest);
  const Changed changed = changed_settings(newest / models::kSettingsFile, schema);
  check_same_run(config, newest, changed, model, task, saved, start);
  const TrainConfig& before = changed.before;
  check(arithmetic(before).masters == arithmetic(config).masters, ErrorKind::setting, [&] {
    const bool rounding = before.train.rounding != config.train.rounding;
    return "the arithmetic is not that of " + newest.string() + ": expected train." +
           (rounding ? "rounding = " + before.train.rounding + ", found " + config.train.rounding
                     : "dtype = " + before.train.dtype + ", found " + config.train.dtype) +
           "; undo the change" + ways_out(config);
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

models::RunState resume(const TrainConfig& config, const Schema& schema, const TrainingTask& task,
                        const models::RunState& start, models::Trainer& trainer, Progress& progress) {
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

  const Changed changed = changed_settings(newest / models::kSettingsFile, schema);
  const auto model = trainer.model().spec();
  check_same_run(config, newest, changed, *model, task, saved, start);
  std::vector<std::string> told = changed.lines;
  for (const std::string& line : context_lines(newest, *model, saved, start.seq_len)) told.push_back(line);
  for (const std::string& line : changed_processes(config.run.out, world.size())) told.push_back(line);
  models::load_checkpoint(newest, trainer);
  progress.note("resuming from " + newest.string() + (told.empty() ? "" : " with other settings:"));
  for (const std::string& line : told) progress.note("  " + line);
  saved.data_fingerprint = start.data_fingerprint;
  return models::with_length(saved, start.seq_len);
}

}  // namespace braid::apps
