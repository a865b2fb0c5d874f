// From the settings of `braid train` to the things it trains with.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>

#include "apps/train/train_config.h"
#include "braid/models/dcformer/config.h"
#include "braid/models/dcformer/cost.h"
#include "braid/models/language_model.h"
#include "braid/models/text/dataset.h"
#include "braid/models/text/sampler.h"
#include "braid/models/training/trainer.h"
#include "braid/nn/optim/schedule.h"

namespace braid::apps {

// The preset with the model.* overrides, finished. vocabulary: of the data; taken when the settings name no vocab_size.
models::ModelConfig model_config(const TrainConfig& config, int64_t vocabulary);
nn::OptimizerOptions optimizer_options(const TrainConfig& config);
int64_t optimizer_moments(const TrainConfig& config);  // state elements per parameter element
nn::Schedule schedule(const TrainConfig& config);
int64_t sequence_length(const TrainConfig& config, const models::ModelConfig& model);

// train.dtype: the types of the master weights (and of gradients, moments, checkpoints) and of the model's arithmetic.
struct Arithmetic {
  DType masters, compute;
};
Arithmetic arithmetic(const TrainConfig& config);
// train.attention_workspace in bytes; 0 on the CPU, which needs none.
int64_t attention_workspace(const TrainConfig& config, Device device);
// The model of a run with its first weights; over several tensor ranks this process's shards of them.
std::unique_ptr<models::LanguageModel> make_model(const TrainConfig& config, const models::ModelConfig& model,
                                                  const dist::ProcessMesh& mesh, Device device);

// What a step needs at its worst moment.
models::TrainingMemory expected_memory(const TrainConfig& config, const models::ModelConfig& model, int64_t seq_len);
// Error(setting) when that is more than twice this machine's memory: a slip of the pen. Closer cases are left to try.
void check_memory(const TrainConfig& config, const models::ModelConfig& model, int64_t seq_len,
                  const dist::ProcessMesh& mesh, Device device);

// Windows `indices` of a data set: ids (B, T) and the next tokens as targets.
models::Batch read_batch(const models::text::Dataset& data, const std::vector<int64_t>& indices);
// This data rank's share of the micro-batches of a step whose first sequence is number `first` in the sampler's order.
// The micro-batches are the same whatever the number of ranks.
std::vector<models::Batch> step_batches(const TrainConfig& config, const models::text::Dataset& data,
                                        const models::text::Sampler& sampler, int64_t first,
                                        const dist::ProcessMesh& mesh);
// Validation batches, spread evenly over the split, the same at every validation; this data rank's share of each, which
// may be empty.
std::vector<models::Batch> validation_batches(const TrainConfig& config, const models::text::Dataset& data,
                                              const dist::ProcessMesh& mesh);

// What differs from the settings in a checkpoint's file, as "train.batch_size: 8 -> 16"; the run's folder aside, which
// may have been moved. `saved` gets the settings of the file.
std::vector<std::string> changed_settings(const std::filesystem::path& file, const Schema& now, TrainConfig& saved);

// What the device's matrix product reaches with this type, in FLOP/s (measured in some 50 ms): what MFU is measured
// against.
double measured_flops(Device device, DType dtype);

}  // namespace braid::apps
