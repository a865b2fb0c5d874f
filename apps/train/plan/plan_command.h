// braid train --dry-run: its flags, and the plan that it prints.
#pragma once
#include <vector>

#include "apps/cli/command.h"
#include "apps/train/config/train_config.h"
#include "apps/train/run/job.h"

namespace braid::apps {

std::vector<Flag> plan_flags();
// Error(setting) when one of them is given without --dry-run.
void check_plan_flags(const Arguments& arguments);
// Prints the plan; then Error(setting) when the run could not be made so.
int print_plan(const TrainConfig& config, const Arguments& arguments, const Job& job);

}  // namespace braid::apps
