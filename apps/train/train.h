// A training run from its settings to its end.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "apps/train/config/train_config.h"
#include "apps/train/log/log.h"
#include "apps/train/run/job.h"

namespace braid::apps {

// Fills `config`, which `schema` is of, from a TOML file or the folder of a run ("": neither) and key=value overrides.
// Returns notes for the user. Errors are those of load_config().
std::vector<std::string> read_train_settings(TrainConfig& config, const Schema& schema, std::filesystem::path file,
                                             std::vector<std::string> overrides);

// Gets the row of each step when it is in the log. false: saves the state and ends, as a signal does.
using RowObserver = std::function<bool(const LogRow&)>;

// Trains, or resumes, the run of these settings on the processes of the job. `schema` is of `config`; `command`: as it
// was typed, for the record. Returns 0, or 75 when it was stopped by a signal or by on_row; throws Error. Collective.
int train(const TrainConfig& config, const Schema& schema, const Job& job, const std::string& command,
          const RowObserver& on_row = {});

}  // namespace braid::apps
