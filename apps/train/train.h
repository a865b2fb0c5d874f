// A training run from its settings to its end.
#pragma once
#include <string>

#include "apps/train/config/train_config.h"
#include "apps/train/run/job.h"

namespace braid::apps {

// Trains, or resumes, the run of these settings on the processes of the job. `schema` is of `config`; `command`: as it
// was typed, for the record. Returns 0, or 75 when it was stopped by a signal; throws Error. Collective.
int train(const TrainConfig& config, const Schema& schema, const Job& job, const std::string& command);

}  // namespace braid::apps
