#include "apps/train/task/run_data.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "apps/cli/text.h"
#include "apps/train/task/from_config.h"
#include "apps/train/task/task.h"
#include "braid/models/data/text/manifest.h"
#include "braid/models/training/checkpoint/checkpoint.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/path_status.h"

namespace braid::apps {

namespace fs = std::filesystem;
using models::text::Dataset, models::text::DocumentAttention, models::text::SequenceOptions, models::text::Split;

int64_t vocabulary_of(const TrainConfig& config) {
  const fs::path path = config.data.path;
  io::check_readable(path);
  const bool file = io::exists(path) && !io::is_folder(path);
  const bool other_folder = io::is_folder(path) && !io::exists(path / models::text::manifest_name);
  check(!file && !other_folder, ErrorKind::input, [&] {
    return "data.path = " + path.string() + " is a " + (file ? "file" : "folder without dataset.json") +
           ": expected a folder that braid prepare wrote; run braid prepare " + path.string() +
           " -o DIR first, then set data.path=DIR";
  });
  return models::text::read_manifest(config.data.path).vocab_size;
}

static int64_t sequence_length_of_data(const TrainConfig& config) {
  return sequence_length(config, *model_spec(config, vocabulary_of(config)));
}

SequenceOptions sequence_options(const TrainConfig& config) {
  const bool samples = models::text::read_manifest(config.data.path).samples.has_value();
  const bool separate = config.data.documents == "separate" || (config.data.documents == "auto" && samples);
  return {.documents = separate ? DocumentAttention::separate : DocumentAttention::joined,
          .packing = models::text::parse_packing(config.data.packing),
          .cut_long_samples = config.data.long_samples == "cut"};
}

Dataset training_data(const TrainConfig& config) {
  const int64_t T = sequence_length_of_data(config);
  return Dataset(config.data.path, Split::train, T, sequence_options(config));
}

std::optional<Dataset> validation_data(const TrainConfig& config) {
  if (config.eval.interval == 0) return std::nullopt;
  const int64_t T = sequence_length_of_data(config);
  const models::text::Manifest manifest = models::text::read_manifest(config.data.path);
  const int64_t tokens = manifest.val.tokens;
  check(manifest.samples ? tokens > 0 : tokens > T, ErrorKind::setting, [&] {
    return str(
        "the val split of ", config.data.path, " is too small to validate on: expected at least ",
        manifest.samples ? "one sample" : str(T + 1, " tokens for one sequence"), ", found ", tokens,
        manifest.samples ? " tokens" : "",
        "; set eval.interval=0 to train without validation, lower data.seq_len, or prepare the data again with a "
        "larger --val-fraction");
  });
  return Dataset(config.data.path, Split::val, T, sequence_options(config));
}

// Where a run stands; a damaged checkpoint will be passed over by the resume.
static models::RunState newest_readable_state(const fs::path& run) {
  const std::vector<models::StepFolder> checkpoints = models::step_folders(run);
  for (size_t i = checkpoints.size(); i-- > 0;) {
    try {
      return models::read_state(checkpoints[i].path);
    } catch (const io::SystemError&) {
      throw;
    } catch (const Error&) {
    }
  }
  return {};
}

std::string set_steps_by_epochs(TrainConfig& config, const std::vector<std::string>& overrides) {
  const auto given = [&](const std::string& key) {
    return std::ranges::any_of(overrides, [&](const std::string& text) { return text.starts_with(key + "="); });
  };
  if (given("train.steps")) {
    check(!given("train.epochs") || config.train.epochs == 0, ErrorKind::setting,
          "train.steps and train.epochs both say how long the run is: expected one of them");
    config.train.epochs = 0;
  }
  if (config.train.epochs == 0 || config.data.path.empty()) return "";
  const std::unique_ptr<TrainingTask> task = make_task(config);
  const int64_t there = task->samples();
  const auto samples = static_cast<double>(config.train.batch_size) * static_cast<double>(config.train.accumulate);
  // A run that continues with another batch size has some behind it in other steps.
  const models::RunState done = models::with_length(newest_readable_state(config.run.out), task->sample_tokens());
  if (!done.earlier.empty()) task->continue_after(done.earlier);
  const double left = task->samples_of_epochs(config.train.epochs) - static_cast<double>(done.samples);
  const double steps = static_cast<double>(done.step) + std::max(0.0, std::ceil(left / samples));
  check(steps <= 1e12, ErrorKind::setting, [&] {
    return "train.epochs = " + shortest(config.train.epochs) +
           " gives more steps than a run may have: expected at most 1e12";
  });
  config.train.steps = static_cast<int64_t>(steps);
  return str("train.epochs = ", shortest(config.train.epochs), " over ", there,
             task->log_kind() == "text" ? " sequences" : " images", " gives train.steps = ", config.train.steps);
}

std::string words_about_samples(const Dataset& data, const TrainConfig& config) {
  if (!data.has_samples()) return "";
  const models::text::SampleCounts& n = data.sample_counts();
  const double full = 100 * static_cast<double>(n.packed_tokens) / static_cast<double>(n.capacity);
  std::string text = str(data.size(), " sequences of ", n.samples, " samples, ", human(full, 3), "% full");
  if (n.too_long > 0)
    text += str(
        "; ", n.too_long, " of the samples are longer than data.seq_len = ", data.seq_len(), " (the longest has ",
        n.longest, " tokens) and are ",
        config.data.long_samples == "cut" ? "cut (data.long_samples)" : "left out (data.long_samples=cut cuts them)");
  if (n.without_target > 0)
    text +=
        str("; ", n.without_target, " without an answer in their first ", data.seq_len() + 1, " tokens are left out");
  return text;
}

void check_prompt(const TrainConfig& config, const models::ModelSpec& model, const models::text::Tokenizer& tokenizer) {
  if (config.sample.interval == 0) return;
  const auto tokens = static_cast<int64_t>(tokenizer.encode(config.sample.prompt).size());
  check(tokens <= model.max_sequence_length(), ErrorKind::setting, [&] {
    return str("sample.prompt is longer than the model's sequences: expected at most block_size = ",
               model.max_sequence_length(), " tokens, found ", tokens, "; shorten it, or set sample.interval=0");
  });
}

}  // namespace braid::apps
