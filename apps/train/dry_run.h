// braid train --dry-run: what a run would take, without allocating the model.
#pragma once
#include "apps/train/train_config.h"

namespace braid::apps {

int dry_run(const TrainConfig& config);

}  // namespace braid::apps
