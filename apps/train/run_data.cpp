#include "apps/train/run_data.h"

#include <filesystem>

#include "apps/train/from_config.h"
#include "braid/models/text/manifest.h"
#include "braid/tensor/error.h"

namespace braid::apps {

namespace fs = std::filesystem;
using models::text::Dataset, models::text::DocumentAttention, models::text::Split;

int64_t vocabulary_of(const TrainConfig& config) {
  const fs::path path = config.data.path;
  std::error_code none;
  const bool file = fs::exists(path, none) && !fs::is_directory(path, none);
  const bool other_folder = fs::is_directory(path, none) && !fs::exists(path / models::text::manifest_name, none);
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

static DocumentAttention document_attention(const TrainConfig& config) {
  return config.data.documents == "separate" ? DocumentAttention::separate : DocumentAttention::joined;
}

Dataset training_data(const TrainConfig& config) {
  return Dataset(config.data.path, Split::train, sequence_length_of_data(config), document_attention(config));
}

std::optional<Dataset> validation_data(const TrainConfig& config) {
  if (config.eval.interval == 0) return std::nullopt;
  const int64_t T = sequence_length_of_data(config), tokens = models::text::read_manifest(config.data.path).val.tokens;
  check(tokens > T, ErrorKind::setting, [&] {
    return "the val split of " + config.data.path + " is too small to validate on: expected at least " +
           std::to_string(T + 1) + " tokens for one sequence, found " + std::to_string(tokens) +
           "; set eval.interval=0 to train without validation, lower data.seq_len, or prepare the data again with a "
           "larger --val-fraction";
  });
  return Dataset(config.data.path, Split::val, T, document_attention(config));
}

void check_prompt(const TrainConfig& config, const models::ModelSpec& model, const models::text::Tokenizer& tokenizer) {
  if (config.sample.interval == 0) return;
  const auto tokens = static_cast<int64_t>(tokenizer.encode(config.sample.prompt).size());
  check(tokens <= model.max_sequence_length(), ErrorKind::setting, [&] {
    return "sample.prompt is longer than the model's sequences: expected at most block_size = " +
           std::to_string(model.max_sequence_length()) + " tokens, found " + std::to_string(tokens) +
           "; shorten it, or set sample.interval=0";
  });
}

}  // namespace braid::apps
