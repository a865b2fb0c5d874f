// Memory and time of a run by formula, without allocating the model.
#pragma once
#include "apps/train/train_config.h"
#include "braid/distributed/comm/process_mesh.h"
#include "braid/models/dcformer/config.h"
#include "braid/models/dcformer/cost.h"

namespace braid::apps {

// braid train --dry-run: prints parameters, memory, FLOPs, communication and expected time.
int dry_run(const TrainConfig& config);

// Peak memory of a training step.
models::TrainingMemory expected_memory(const TrainConfig& config, const models::ModelConfig& model, int64_t seq_len);
// Error(setting) when one process on the CPU needs more than twice this machine's memory, which is a mistake in the
// settings. Closer cases are left to try.
void check_memory(const TrainConfig& config, const models::ModelConfig& model, int64_t seq_len,
                  const dist::ProcessMesh& mesh, Device device);

}  // namespace braid::apps
