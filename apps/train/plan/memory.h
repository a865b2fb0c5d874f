// The memory of a training step by its trace: whether it fits, and which settings save how much.
#pragma once
#include <string>
#include <vector>

#include "apps/train/config/train_config.h"
#include "apps/train/plan/machine.h"
#include "braid/models/cost/trace.h"
#include "braid/models/model_spec.h"

namespace braid::apps {

// Bytes of memory that this machine, or the container on it, has.
double memory_of_this_machine();

// A step with these settings on a process of the mesh; `gpu`: its attention holds scores (train.attention_workspace).
models::TrainingSetup training_setup(const TrainConfig& config, int64_t seq_len, const models::MeshShape& mesh = {},
                                     bool gpu = false);
// Bytes of one process.
double memory_needed(const TrainConfig& config, const models::ModelSpec& model, int64_t seq_len,
                     const models::MeshShape& mesh = {}, bool gpu = false);

// Settings that lower the memory of a process without another result of the run but rounding, each with the bytes that
// it alone leaves, the least first: recomputation, bf16, no copy for checkpoints, smaller micro-batches (and more of
// them), tensor ranks.
struct MemorySaver {
  std::string settings;  // "train.batch_size=1 train.accumulate=8"
  double bytes = 0;
};
std::vector<MemorySaver> memory_savers(const TrainConfig& config, const models::ModelSpec& model, int64_t seq_len,
                                       const models::MeshShape& mesh = {}, bool gpu = false);
// The same in words, with the fewest of them that together need at most `available` bytes; 0: not known, each alone.
std::string memory_advice(const TrainConfig& config, const models::ModelSpec& model, int64_t seq_len, double available,
                          const models::MeshShape& mesh = {}, bool gpu = false);

// Error(setting) when a process of the mesh needs more memory than a machine of this kind has, where that is known.
void check_memory(const TrainConfig& config, const models::ModelSpec& model, int64_t seq_len,
                  const models::MeshShape& mesh, const Machine& machine);

}  // namespace braid::apps
