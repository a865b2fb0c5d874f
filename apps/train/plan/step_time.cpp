#include "apps/train/plan/step_time.h"

#include <algorithm>
#include <optional>

#include "apps/train/plan/memory.h"
#include "braid/distributed/sharding/partition.h"
#include "braid/tensor/error.h"
#include "braid/tensor/parallel.h"

namespace braid::apps {

double StepPlan::communication() const { return in_line + std::max(0.0, beside - compute * 2 / 3); }

double step_flops(const TrainConfig& config, const SampleFlops& sample) {
  return sample.training() * static_cast<double>(config.train.batch_size) *
         static_cast<double>(config.train.accumulate);
}

StepPlan plan_step(const TrainConfig& config, const models::ModelSpec& model, int64_t seq_len,
                   const models::MeshShape& mesh, const Machine& machine, const SampleFlops& sample) {
  const models::TrainingSetup setup = training_setup(config, seq_len, mesh, machine.gpu);
  const models::StepCost cost = models::trace_step(model, setup);
  StepPlan plan{.mesh = mesh, .memory = cost.memory, .volume = cost.volume};

  const double samples = static_cast<double>(setup.samples[0]) * static_cast<double>(config.train.accumulate);
  const double flops = samples * (sample.training() + (setup.recompute ? sample.forward : 0));
  plan.compute = flops / static_cast<double>(mesh.context * mesh.tensor) / (machine.flops * machine.efficiency);
  plan.links_known = mesh.ranks() == 1 || (machine.near_link > 0 && machine.far_link > 0);
  if (mesh.ranks() == 1 || !plan.links_known) return plan;
  // Tensor ranks are adjacent, then context ranks: a group lies within a node when all ranks up to it do.
  const auto seconds = [&](int64_t bytes, int64_t ranks) {
    return static_cast<double>(bytes) / (ranks <= machine.per_node ? machine.near_link : machine.far_link);
  };
  const models::StepVolume& v = plan.volume;
  const auto gradients = [](const dist::CommStats& s) { return s.bytes_of(dist::Collective::reduce_scatter); };
  plan.in_line = seconds(v.tensor.total(), mesh.tensor) + seconds(v.context.total(), mesh.tensor * mesh.context) +
                 seconds(v.replicas.total() - gradients(v.replicas), mesh.ranks()) +
                 seconds(v.world.total() - gradients(v.world), mesh.ranks());
  plan.beside = seconds(gradients(v.replicas), mesh.ranks()) + seconds(gradients(v.world), mesh.ranks());
  return plan;
}

namespace {
// No process is without positions of a sample.
bool every_process_has_rows(int64_t seq_len, const models::MeshShape& mesh) {
  const auto contexts = static_cast<int>(mesh.context), ranks = static_cast<int>(mesh.tensor);
  const dist::Partition over_context = dist::zigzag_partition(seq_len, contexts);
  for (int c = 0; c < contexts; ++c) {
    const dist::Partition rows = dist::zigzag_partition_within(over_context, c, ranks);
    for (int t = 0; t < ranks; ++t)
      if (rows.size(t) == 0) return false;
  }
  return true;
}
}  // namespace

std::vector<StepPlan> plan_layouts(const TrainConfig& config, const models::ModelSpec& model, int64_t seq_len,
                                   int64_t processes, const Machine& machine, const SampleFlops& sample) {
  constexpr int64_t kNode = 8, kContexts = 8;
  std::vector<models::MeshShape> meshes;
  for (int64_t tensor = 1; tensor <= kNode; ++tensor) {
    for (int64_t context = 1; context <= kContexts; ++context) {
      const models::MeshShape mesh{processes / (tensor * context), context, tensor};
      if (mesh.ranks() == processes && mesh.data <= config.train.batch_size && every_process_has_rows(seq_len, mesh))
        meshes.push_back(mesh);
    }
  }
  std::vector<std::optional<StepPlan>> found(meshes.size());
  parallel_for(std::ssize(meshes), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      try {
        found[i] = plan_step(config, model, seq_len, meshes[i], machine, sample);
      } catch (const Error&) {  // the model cannot be sharded so
      }
    }
  });
  std::vector<StepPlan> plans;
  for (const std::optional<StepPlan>& plan : found)
    if (plan) plans.push_back(*plan);
  std::ranges::stable_sort(plans, {}, [&](const StepPlan& plan) {
    return std::pair{machine.memory > 0 && plan.needed() > machine.memory, plan.seconds()};
  });
  return plans;
}

}  // namespace braid::apps
