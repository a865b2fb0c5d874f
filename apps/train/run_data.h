// The data of a run: the splits that its settings need, and every condition between settings and data. What fails here
// would otherwise fail in the middle of the run.
#pragma once
#include <optional>

#include "apps/train/train_config.h"
#include "braid/models/model_spec.h"
#include "braid/models/text/dataset.h"

namespace braid::apps {

// The vocabulary of the data in data.path. Error(input) when braid prepare has not written it.
int64_t vocabulary_of(const TrainConfig& config);
models::text::Dataset training_data(const TrainConfig& config);
// None with eval.interval = 0. Error(setting) when the data have too few tokens to validate on.
std::optional<models::text::Dataset> validation_data(const TrainConfig& config);
// Error(setting) when sample.prompt is longer than the model's sequences.
void check_prompt(const TrainConfig& config, const models::ModelSpec& model, const models::text::Tokenizer& tokenizer);

}  // namespace braid::apps
