// The disk that the checkpoints of a run take, beside what is free for run.out.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "apps/train/config/train_config.h"
#include "braid/models/model_spec.h"

namespace braid::apps {

struct DiskPlan {
  double one = 0;                   // bytes of a checkpoint: weights and optimizer
  int64_t newest = 0;               // as many are kept
  int64_t milestones = 0;           // beside those of checkpoint.keep_every
  bool best = false;                // and the one of checkpoint.best
  bool beside = false;              // and one that is being written: the oldest goes when the newest is complete
  std::optional<double> free = {};  // bytes for run.out; none: the system does not say

  double max_bytes() const { return one * static_cast<double>(newest + milestones + best + beside); }
};
DiskPlan plan_disk(const TrainConfig& config, const models::ModelSpec& model);

// The run's folder, or the folder above it that exists.
std::filesystem::path existing_folder(const std::string& out);

// What makes the checkpoints smaller or fewer, as advice.
std::string disk_advice(const DiskPlan& plan);
// Error(output) when there is no room for a single checkpoint: the work of the run could not be saved.
void check_disk(const DiskPlan& plan, const std::string& out);

}  // namespace braid::apps
