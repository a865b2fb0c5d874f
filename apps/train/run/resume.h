// Resuming a run from its newest valid checkpoint. Model, data, seed, kind of optimizer and type of the master weights
// must be those that the run began with; every other setting may change, and each change is printed. So may the length
// of sequences, the model's longest one where no weight depends on it, and weights of a mixture where the run has not
// come to yet.
#pragma once
#include "apps/cli/progress.h"
#include "apps/train/config/train_config.h"
#include "braid/models/model_spec.h"
#include "braid/models/training/checkpoint/checkpoint.h"

namespace braid::apps {

class TrainingTask;

// Loads the newest valid checkpoint of the run in config.run.out into the trainer. Returns `start`, the state of a new
// run, or the state of the checkpoint. Collective: all ranks search together, and must have the same program, settings,
// data and checkpoints. Error(setting) when the checkpoint belongs to another run, Error(no_checkpoint) when there are
// checkpoints and none is valid.
models::RunState resume(const TrainConfig& config, const Schema& schema, const TrainingTask& task,
                        const models::RunState& start, models::Trainer& trainer, Progress& progress);
// The same conditions without reading weights and checksums, for the newest checkpoint: Error(setting) when it belongs
// to another run. Returns its step, 0 where there is none.
int64_t check_resumable(const TrainConfig& config, const Schema& schema, const models::ModelSpec& model,
                        const TrainingTask& task, const models::RunState& start);

}  // namespace braid::apps
