#include "apps/train/task/run_data.h"

#include <algorithm>
#include <cmath>

#include "apps/cli/text.h"
#include "apps/train/config/data_sources.h"
#include "apps/train/task/from_config.h"
#include "apps/train/task/task.h"
#include "braid/models/data/text/manifest.h"
#include "braid/models/data/vision/manifest.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/path_status.h"

namespace braid::apps {

namespace fs = std::filesystem;
using models::text::Dataset, models::text::DocumentAttention, models::text::Manifest, models::text::MixedOrder,
    models::text::SequenceOptions, models::text::Split;

static void check_source(const std::string& folder, const std::string& first) {
  check(io::is_folder(folder) && io::exists(fs::path(folder) / models::text::manifest_name), ErrorKind::setting, [&] {
    return "data.sources names " + folder + ", which is no folder with dataset.json: expected one that braid prepare " +
           "wrote; run braid prepare INPUT -o " + folder + " first";
  });
  check(!models::vision::holds_images(folder), ErrorKind::setting,
        [&] { return "data.sources names " + folder + ", which holds images: expected folders of text"; });
  const Manifest data = models::text::read_manifest(folder), expected = models::text::read_manifest(first);
  check(!models::text::holds_preferences(data), ErrorKind::setting, [&] {
    return "data.sources names " + folder + ", which holds preferences: expected folders of text; train on it alone, " +
           "with data.path";
  });
  check(data.train.tokens > 0, ErrorKind::setting, [&] {
    return "the source " + folder + " has no training tokens: expected at least one sequence; prepare more text, or " +
           "leave it out of data.sources";
  });
  check(data.tokenizer_fingerprint == expected.tokenizer_fingerprint && data.vocab_size == expected.vocab_size,
        ErrorKind::setting, [&] {
          return str("the sources ", first, " and ", folder, " have other tokens: expected the tokenizer ",
                     expected.tokenizer, " with ", expected.vocab_size, " ids in both, found ", data.tokenizer,
                     " with ", data.vocab_size, "; prepare one of them again with braid prepare --tokenizer ", first);
        });
}

int64_t vocabulary_of(const TrainConfig& config) {
  if (config.data.path.empty()) {
    const std::vector<std::string> folders = data_folders(config);
    for (const std::string& folder : folders) check_source(folder, folders[0]);
    return models::text::read_manifest(folders.at(0)).vocab_size;
  }
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

int64_t sequence_length_of_data(const TrainConfig& config) {
  return sequence_length(config, *model_spec(config, vocabulary_of(config)));
}

SequenceOptions sequence_options(const TrainConfig& config, const std::string& folder) {
  const bool samples = models::text::read_manifest(folder).samples.has_value();
  const bool separate = config.data.documents == "separate" || (config.data.documents == "auto" && samples);
  return {.documents = separate ? DocumentAttention::separate : DocumentAttention::joined,
          .packing = models::text::parse_packing(config.data.packing),
          .cut_long_samples = config.data.long_samples == "cut"};
}

static Dataset split_of(const TrainConfig& config, const std::string& folder, Split split, int64_t T) {
  return Dataset(folder, split, T, sequence_options(config, folder));
}

Dataset training_data(const TrainConfig& config) {
  const int64_t T = sequence_length_of_data(config);
  return split_of(config, data_folder(config), Split::train, T);
}

MixedOrder training_order(const TrainConfig& config) {
  const auto seed = static_cast<uint64_t>(config.run.seed);
  if (config.data.sources.empty()) return MixedOrder(training_data(config), seed);
  const int64_t T = sequence_length_of_data(config);
  std::vector<Dataset> data;
  MixedOrder::Weights weights;
  for (const DataSource& source : data_sources(config)) {
    const Manifest manifest = models::text::read_manifest(source.path);
    check(manifest.samples || manifest.train.tokens > T, ErrorKind::setting, [&] {
      return str("the source ", source.path, " is too small: expected at least ", T + 1,
                 " training tokens for one sequence, found ", manifest.train.tokens,
                 "; prepare more text, lower data.seq_len, or leave it out of data.sources");
    });
    data.push_back(split_of(config, source.path, Split::train, T));
    weights.push_back(source.weights);
  }
  return MixedOrder(std::move(data), std::move(weights), seed);
}

// Whether the val split has a sequence. Samples of data.path alone are checked by Dataset.
static bool can_validate(const TrainConfig& config, const std::string& folder, const Manifest& data, int64_t T) {
  if (!data.samples || data.val.tokens == 0 || config.data.sources.empty())
    return data.val.tokens > (data.samples ? 0 : T);
  constexpr int64_t longest = int64_t{1} << 31;
  return split_of(config, folder, Split::val, longest).rest({}, T).size() > 0;
}

std::vector<std::optional<Dataset>> validation_data(const TrainConfig& config) {
  if (config.eval.interval == 0) return {};
  const int64_t T = sequence_length_of_data(config);
  const std::vector<DataSource> sources = data_sources(config);
  std::vector<std::optional<Dataset>> data;
  bool enough = false;
  for (const std::string& folder : data_folders(config)) {
    const bool can = can_validate(config, folder, models::text::read_manifest(folder), T);
    enough = enough || (can && (sources.empty() || sources[data.size()].weights.back().weight > 0));
    data.push_back(can ? std::optional(split_of(config, folder, Split::val, T)) : std::nullopt);
  }
  check(enough, ErrorKind::setting, [&] {
    const Manifest manifest = models::text::read_manifest(data_folder(config));
    return str(sources.empty() ? "the val split of " + config.data.path + " is"
                               : "the val splits of all data.sources with a weight at the end of the run are",
               " too small to validate on: expected at least ",
               manifest.samples ? str("one sample within ", T + 1, " tokens") : str(T + 1, " tokens for one sequence"),
               ", found ", manifest.val.tokens, manifest.samples ? " tokens" : "",
               sources.empty() ? "" : " in the first", "; set eval.interval=0 to train without validation, ",
               manifest.samples ? "raise" : "lower",
               " data.seq_len, or prepare the data again with a larger --val-fraction");
  });
  return data;
}

// Where a run stands; a damaged checkpoint will be passed over by the resume.
models::RunState newest_readable_state(const fs::path& run) {
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
             task->log_kind() == "text"     ? " sequences"
             : task->log_kind() == "images" ? " images"
                                            : " pairs",
             " gives train.steps = ", config.train.steps);
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

void check_sampling(const TrainConfig& config, const models::ModelSpec& model,
                    const models::text::Tokenizer& tokenizer) {
  if (config.sample.interval == 0) return;
  check(!config.run.strict || (model.generates_strictly() && config.train.dtype != "f64"), ErrorKind::setting, [&] {
    return str(
        "run.strict = true makes samples with weights of f32 or bf16 and causal attention, without capped scores "
        "and composed variants: expected sample.interval = 0 in this run, found ",
        config.sample.interval);
  });
  const auto tokens = static_cast<int64_t>(tokenizer.encode(config.sample.prompt).size());
  check(tokens <= model.max_sequence_length(), ErrorKind::setting, [&] {
    return str("sample.prompt is longer than the model's sequences: expected at most block_size = ",
               model.max_sequence_length(), " tokens, found ", tokens, "; shorten it, or set sample.interval=0");
  });
}

}  // namespace braid::apps
