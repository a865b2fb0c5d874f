#include "braid/models/cost/trace.h"

#include <algorithm>

#include "braid/models/model_spec.h"
#include "braid/models/training/hold_in_16_bits.h"
#include "braid/models/training/trainer.h"
#include "braid/tensor/memory.h"

namespace braid::models {

namespace {

std::unique_ptr<Model> traced_model(const ModelSpec& spec, const TrainingSetup& setup, const dist::ProcessMesh& mesh) {
  const MemoryScope scope(MemoryUse::weights);
  std::unique_ptr<Model> model = spec.make({}, mesh);
  if (setup.compute == DType::f64) model->to(DType::f64);
  if (!setup.masters) hold_in_16_bits(*model);
  if (setup.lora) add_lora(*model, *setup.lora, {}, mesh);
  model->set_recompute(setup.recompute);
  model->set_dropout(setup.dropout);
  model->set_z_loss(setup.z_loss);
  model->set_attention_workspace(setup.attention_workspace);
  return model;
}

void train(Trainer& trainer, const std::vector<Batch>& batches) {
  trainer.forward_backward(batches);
  trainer.apply(0);
}

TrainingMemory worst_moment() {
  const MemoryByUse bytes = memory_by_use(kCpu);
  const auto of = [&](MemoryUse use) { return static_cast<double>(bytes.at_peak_of(use)); };
  const auto max = [&](MemoryUse use) { return static_cast<double>(bytes.max[static_cast<size_t>(use)]); };
  return {.weights = of(MemoryUse::weights),
          .gradients = of(MemoryUse::gradients),
          .optimizer = of(MemoryUse::optimizer),
          .activations = of(MemoryUse::activations),
          .working = of(MemoryUse::workspace) + of(MemoryUse::other),
          .max_gradients = max(MemoryUse::gradients),
          .max_activations = max(MemoryUse::activations)};
}

double bytes_of_state(const LocalState& state) {
  int64_t bytes = 0;
  for (const auto* list : {&state.weights, &state.adapter, &state.optimizer})
    for (const LocalTensor& t : *list)
      if (t.values) bytes += t.values.numel() * size_of(t.values.dtype());
  return static_cast<double>(bytes);
}

// a, moved by `share` of its way from b. For micro-batches and samples, in which costs are affine.
StepCost extrapolated(StepCost a, const StepCost& b, double share) {
  const auto move = [&]<class T>(T& x, T from) { x += static_cast<T>(share * static_cast<double>(x - from)); };
  for (auto part : {&TracedFlops::products, &TracedFlops::attention, &TracedFlops::low_rank, &TracedFlops::diagonal,
                    &TracedFlops::static_proj})
    move(a.flops.*part, b.flops.*part);
  for (auto part :
       {&TrainingMemory::weights, &TrainingMemory::gradients, &TrainingMemory::optimizer, &TrainingMemory::activations,
        &TrainingMemory::working, &TrainingMemory::max_gradients, &TrainingMemory::max_activations})
    move(a.memory.*part, b.memory.*part);
  for (auto group :
       {&StepVolume::tensor, &StepVolume::context, &StepVolume::replicas, &StepVolume::world, &StepVolume::data}) {
    for (size_t i = 0; i < dist::kCollectives; ++i) {
      move((a.volume.*group).bytes[i], (b.volume.*group).bytes[i]);
      move((a.volume.*group).calls[i], (b.volume.*group).calls[i]);
    }
  }
  return a;
}

bool all_equal(const std::vector<int64_t>& samples) {
  return std::ranges::count(samples, samples[0]) == std::ssize(samples);
}

// Micro-batches between the first and the last one do the same.
constexpr int64_t kMicroBatches = 3;
// Tokens of a micro-batch, or samples that are no sequences, beyond which nothing new happens.
constexpr int64_t kTokens = int64_t{1} << 20;

}  // namespace

StepCost trace_step(const ModelSpec& spec, const TrainingSetup& setup) {
  const int64_t count = std::ssize(setup.samples) * setup.accumulate, of_each = count > 0 ? setup.samples[0] : 0;
  const int64_t max_samples = std::max<int64_t>(2, kTokens / std::max<int64_t>(1, setup.seq_len)),
                half = max_samples / 2;
  const bool equal = count > 0 && all_equal(setup.samples);
  const auto cost_of = [&](int64_t micro_batches, int64_t samples) {
    TrainingSetup some = setup;
    some.samples.assign(static_cast<size_t>(micro_batches), samples);
    some.accumulate = 1;
    return trace_step(spec, some);
  };
  if (equal && count > kMicroBatches)
    return extrapolated(cost_of(kMicroBatches, of_each), cost_of(kMicroBatches - 1, of_each),
                        static_cast<double>(count - kMicroBatches));
  if (equal && of_each > max_samples)
    return extrapolated(cost_of(count, max_samples), cost_of(count, half),
                        static_cast<double>(of_each - max_samples) / static_cast<double>(max_samples - half));
  check(setup.masters || !setup.gpu, ErrorKind::setting,
        "train.rounding = stochastic is for the CPU: expected nearest, with f32 master weights, on a GPU");
  const EnableGrad on;
  const TraceDevice trace(setup.gpu);
  const dist::ProcessMesh mesh = dist::counting_mesh(setup.mesh, setup.rank);
  const std::unique_ptr<Model> model = traced_model(spec, setup, mesh);
  Trainer trainer(*model, setup.optimizer, 1.0, mesh, setup.compute);
  trainer.minimise(setup.objective);
  if (!setup.masters) trainer.round_stochastically({});
  if (setup.average) trainer.average_weights(0.5);
  std::vector<Batch> batches;
  for (int64_t i = 0; i < setup.accumulate; ++i)
    for (const int64_t samples : setup.samples)
      batches.push_back(setup.objective->blank_batch(*model, samples, setup.seq_len));
  const TracedFlops before = trace.flops();
  reset_peak_memory(kCpu);
  train(trainer, batches);
  TrainingMemory memory = worst_moment();
  memory.copied_here = !setup.gpu;
  if (setup.copied_state) memory.copied_state = bytes_of_state(trainer.local_state());
  return {.flops = trace.flops() - before,
          .memory = memory,
          .volume = {.tensor = mesh.tensor.stats(),
                     .context = mesh.context.stats(),
                     .replicas = mesh.replica_group.stats(),
                     .world = mesh.world.stats(),
                     .data = mesh.data.stats()}};
}

Batch blank_batch(const ModelSpec& spec, int64_t samples, int64_t seq_len) {
  return spec.make_shape_only()->blank_batch(samples, seq_len);
}

TracedFlops forward_flops(const ModelSpec& spec, const Batch& batch, const TrainingSetup& setup) {
  const TraceDevice trace;
  const std::unique_ptr<Model> model = traced_model(spec, setup, {});
  const NoGrad off;
  const TracedFlops before = trace.flops();
  setup.objective->loss_sum(*model, batch);
  return trace.flops() - before;
}

TracedFlops forward_flops(const ModelSpec& spec, int64_t seq_len) {
  return forward_flops(spec, blank_batch(spec, 1, seq_len));
}

TracedFlops training_flops(const ModelSpec& spec, const Batch& batch, const TrainingSetup& setup) {
  const EnableGrad on;
  const TraceDevice trace;
  const std::unique_ptr<Model> model = traced_model(spec, setup, {});
  Trainer trainer(*model, setup.optimizer, 0);
  trainer.minimise(setup.objective);
  const TracedFlops before = trace.flops();
  train(trainer, {batch});
  return trace.flops() - before;
}

}  // namespace braid::models
