// The data of a run: the splits that its settings need, and every condition between settings and data. What fails here
// would otherwise fail in the middle of the run.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/train/config/train_config.h"
#include "braid/models/data/text/mixed_order.h"
#include "braid/models/model_spec.h"
#include "braid/models/training/checkpoint/checkpoint.h"

namespace braid::apps {

// The vocabulary of the data. Error(input) when braid prepare has not written data.path; Error(setting) when it has not
// written a folder of data.sources, or one holds no text, no training tokens or those of another tokenizer.
int64_t vocabulary_of(const TrainConfig& config);
int64_t sequence_length_of_data(const TrainConfig& config);
// folder: samples have document masking by default, text has not.
models::text::SequenceOptions sequence_options(const TrainConfig& config, const std::string& folder);
models::text::Dataset training_data(const TrainConfig& config);  // of several sources the first
models::text::MixedOrder training_order(const TrainConfig& config);
// Where the run in the folder stands: by its newest checkpoint that can be read.
models::RunState newest_readable_state(const std::filesystem::path& run);
// Sets train.steps by train.epochs, where that is above 0 and there are data; `overrides` are those of the command
// line, where train.steps alone replaces train.epochs. Returns what to tell the user; empty: nothing. Error(setting)
// when both are on the command line.
std::string set_steps_by_epochs(TrainConfig& config, const std::vector<std::string>& overrides);
// "140 sequences of 4000 samples, 93% full; ..."; empty for text.
std::string words_about_samples(const models::text::Dataset& data, const TrainConfig& config);
// The val split of each source; none with eval.interval = 0. Error(setting) when the data have too few tokens to
// validate on. Of several sources those with too few have none, but one that has a weight in the last phase has some.
std::vector<std::optional<models::text::Dataset>> validation_data(const TrainConfig& config);
// Error(setting) when sample.prompt is longer than the model's sequences, or samples would have no strict bits.
void check_sampling(const TrainConfig& config, const models::ModelSpec& model,
                    const models::text::Tokenizer& tokenizer);

}  // namespace braid::apps
