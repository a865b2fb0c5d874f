// braid train --dry-run: what a run would take, without allocating the model.
#pragma once
#include "apps/common/train_config.h"

namespace braid::app {

int dry_run(const TrainConfig& config);

}  // namespace braid::app
