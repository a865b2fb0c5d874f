// The plan of a run by a traced step, without allocating the model.
#pragma once
#include <optional>
#include <string>

#include "apps/train/config/train_config.h"
#include "apps/train/plan/machine.h"

namespace braid::apps {

struct DryRun {
  std::string text;              // parameters, memory, layouts, communication, time, checkpoints
  std::optional<Error> problem;  // why braid train could not run so; none: it can
};

// The plan of a run on `processes` processes: 0 for as many as the settings parallel.* require; processes_here of them
// share the memory of this machine. layout: the text ends with layout_table(). Error(setting), Error(input) where braid
// train ends with one before it knows the size of a step.
DryRun dry_run(const TrainConfig& config, const MachineRequest& request = {}, int64_t processes = 0,
               int64_t processes_here = 1, bool layout = false);

// Where the weights come from and which parameters are trained, as comment lines of a TOML file. "" where the weights
// are random and trained alike, or where neither data nor model say how large the model is.
std::string start_comments(const TrainConfig& config);

}  // namespace braid::apps
