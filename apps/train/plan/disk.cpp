#include "apps/train/plan/disk.h"

#include <algorithm>

#include "apps/cli/memory_text.h"
#include "apps/cli/text.h"
#include "apps/train/config/trained.h"
#include "apps/train/task/from_config.h"
#include "braid/tensor/io/path_status.h"

namespace braid::apps {

namespace fs = std::filesystem;

fs::path existing_folder(const std::string& out) {
  std::error_code error;
  fs::path there = fs::absolute(out, error);
  while (there.has_relative_path() && !io::exists(there, ErrorKind::output)) there = there.parent_path();
  return there;
}

DiskPlan plan_disk(const TrainConfig& config, const models::ModelSpec& model) {
  const TrainedParameters parameters = trained_parameters(config, model);
  const int64_t beside = parameters.states + (config.train.ema > 0 ? parameters.trained : 0);
  const DType masters = arithmetic(config).masters, wide = accumulate_type(masters);
  const std::unique_ptr<models::Model> shapes = shape_only(config, model);
  int64_t bytes = beside * size_of(wide);
  for (const nn::NamedTensor& p : nn::parameters(*shapes))
    bytes += p.value.numel() * size_of(shapes->keeps_f32(p.name) ? wide : masters);
  const TrainConfig::Checkpoint& c = config.checkpoint;
  const int64_t steps = config.train.steps, interval = c.interval > 0 ? c.interval : steps;
  const bool any_number = c.minutes > 0 || c.best;  // written between those of the interval
  const int64_t written = any_number ? steps : (steps + interval - 1) / interval;
  DiskPlan plan{.one = static_cast<double>(bytes),
                .newest = std::min(c.keep, written),
                .milestones = c.keep_every > 0 ? steps / c.keep_every : 0,
                .best = c.best};
  plan.beside = written > plan.newest;
  std::error_code error;
  const fs::space_info space = fs::space(existing_folder(config.run.out), error);
  if (!error && space.capacity > 0) plan.free = static_cast<double>(space.available);
  return plan;
}

std::string disk_advice(const DiskPlan& plan) {
  return str(plan.newest > 2 ? "lower checkpoint.keep, " : "",
             plan.milestones > 0 ? "raise checkpoint.keep_every, " : "", "choose another run.out");
}

void check_disk(const DiskPlan& plan, const std::string& out) {
  check(!plan.free || *plan.free >= plan.one, ErrorKind::output, [&] {
    return "the disk is too small for a checkpoint in " + out + ": expected " + bytes_text(plan.one) +
           " of free space, found " + bytes_text(*plan.free) + "; free some space or choose another run.out";
  });
}

}  // namespace braid::apps
