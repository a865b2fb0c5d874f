// The time of a training step on a machine for a layout of its processes: FLOPs over the rate that steps
// reach, and the bytes that a process sends over the rate of its links. Latency of messages and launches, unequal
// shares of work and other traffic on the links are not counted.
#pragma once
#include <vector>

#include "apps/train/config/flops.h"
#include "apps/train/config/train_config.h"
#include "apps/train/plan/machine.h"
#include "braid/models/model_spec.h"

namespace braid::apps {

struct StepPlan {
  models::MeshShape mesh;
  models::TrainingMemory memory;   // of the first process, whose shards are the largest
  models::StepVolume volume;       // bytes that it sends
  double compute = 0;              // seconds
  double in_line = 0, beside = 0;  // seconds of sending: while nothing is computed; beside the backward pass
  bool links_known = true;         // false: sending is not counted

  // The backward pass, two thirds of the computation, hides what is sent beside it.
  double communication() const;
  double needed() const { return memory.total(); }  // bytes
  double seconds() const { return compute + communication(); }
};

// `sample`: FLOPs of a sample, here and below.
StepPlan plan_step(const TrainConfig& config, const models::ModelSpec& model, int64_t seq_len,
                   const models::MeshShape& mesh, const Machine& machine, const SampleFlops& sample);
// FLOPs of a step over all processes, without what is recomputed.
double step_flops(const TrainConfig& config, const SampleFlops& sample);

// The layouts of `processes` that the settings and the model allow, up to 8 tensor and 8 context ranks, the fastest
// first and those that do not fit last.
std::vector<StepPlan> plan_layouts(const TrainConfig& config, const models::ModelSpec& model, int64_t seq_len,
                                   int64_t processes, const Machine& machine, const SampleFlops& sample);

}  // namespace braid::apps
