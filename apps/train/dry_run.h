// Memory and time of a run by formula, without allocating the model.
#pragma once
#include <string>

#include "apps/train/train_config.h"
#include "braid/distributed/comm/process_mesh.h"
#include "braid/models/model_spec.h"

namespace braid::apps {

// The text of braid train --dry-run: parameters, memory, FLOPs, communication and expected time.
std::string dry_run(const TrainConfig& config);

// Error(setting) when one process on the CPU needs more than twice this machine's memory, which is a mistake in the
// settings. Closer cases are left to try.
void check_memory(const TrainConfig& config, const models::ModelSpec& model, int64_t seq_len,
                  const dist::ProcessMesh& mesh, Device device);

}  // namespace braid::apps
