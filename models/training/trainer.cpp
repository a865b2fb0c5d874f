#include "braid/models/training/trainer.h"

#include "braid/autograd/detail/check.h"
#include "braid/autograd/ops.h"
#include "braid/models/training/source_losses.h"
#include "braid/models/training/trainer_strict.h"
#include "braid/nn/optim/clip.h"
#include "braid/nn/optim/registry.h"
#include "braid/tensor/strict.h"

namespace braid::models {

Trainer::Trainer(Model& model, const nn::OptimizerOptions& options, double clip, const dist::ProcessMesh& mesh,
                 std::optional<DType> compute)
    : model_(model),
      mesh_(mesh),
      masters_(model, compute.value_or(model.dtype()), [&](const std::string& name) { return !model.keeps_f32(name); }),
      parameters_(nn::parameters(masters_)),
      parallel_(
          parameters_,
          [&](const std::string& name) -> const dist::Communicator& {
            return model.shard_of(name) ? mesh_.replica_group : mesh_.world;
          },
          dist::kBucketBytes, [&](const std::string& name) { return nn::rule_of(options.groups, name).frozen_until; },
          [&, all = options_for(model, options)](const nn::NamedTensor& p) {
            return nn::takes_as_matrix(all, p) ? nn::matrix_work(unsharded_shape(p)) : 0;
          }),
      optimizer_(nn::make_optimizer(parallel_.pieces(), options_for(model, options))),
      copies_(masters_.copies_of(optimizer_->parameters())),
      step_(model.device(), optimizer_->parameters()),
      clip_(clip) {
  if (strict_bits() && mesh.tensor.size() > 1) check_strict_shards(parameters_);
  nn::check_no_buffers(model, "checkpoints of training");
  nn::check_groups(options.groups, parameters_);
  optimizer_->set_copies(copies_);
  optimizer_->set_matrices(matrices());
  parallel_.freeze(0);
}

StepMetrics Trainer::forward_backward(const std::vector<Batch>& given) {
  if (parallel_.freeze(optimizer_->steps())) step_.forget();
  discard();
  StepMetrics metrics;
  for (const Batch& b : given) objective_->check_batch(model_, b), metrics.tokens += objective_->count(model_, b);
  metrics.tokens = mesh_.data.sum(metrics.tokens);  // context and tensor ranks have the same targets
  check(metrics.tokens > 0, ErrorKind::input, "the batch has no target that counts: there is nothing to learn from");
  const double loss_scale = 1 / static_cast<double>(metrics.tokens);
  StrictShare share = strict_bits() ? strict_share(given, *objective_, mesh_) : StrictShare{.batches = given};
  StepSums sums = step_.gradients(share.batches, loss_scale, [&](const StepBuffers& buffers) {
    strict_bits() ? compute_strict_gradients(buffers, share) : compute_gradients(buffers);
  });
  if (strict_bits()) drop_repeated(share, sums);
  double loss = 0, weights = 0, squares = 0;
  for (double sum : sums.losses) loss += sum * loss_scale;
  for (double sum : sums.squared_weights) weights += sum;
  for (double sum : sums.squared_norms) squares += sum;
  // The loss is equal on tensor ranks; every element of the model belongs to one piece of one rank.
  metrics.loss = mesh_.world.sum(!std::isfinite(weights) ? NAN : mesh_.tensor.rank() == 0 ? loss : 0.0);
  if (std::isfinite(metrics.loss)) {
    metrics.grad_norm = std::sqrt(mesh_.world.sum(squares));
    if (strict_bits()) make_exact(metrics, sums, loss_scale, optimizer_->parameters(), mesh_);
  }
  metrics.source_losses = source_losses(share.batches, sums.sample_losses);
  metrics.sample_losses = sums.sample_losses;
  grad_norm_ = metrics.grad_norm;
  return metrics;
}

// Fills the gradients of the pieces and the metrics; nothing is read back from the device.
void Trainer::compute_gradients(const StepBuffers& buffers) {
  const SkipIndexCheck checked;
  const auto count = static_cast<int64_t>(buffers.batches.size());
  for (int64_t i = 0; i < count; ++i) {
    MemoryScope scope(MemoryUse::activations);
    masters_.attach_cast(count == 1);
    Tensor loss = loss_of(*objective_, model_, i, buffers);  // ()
    if (i + 1 == count) parallel_.start();                   // gradients travel during this backward pass
    backward(loss, buffers.loss_scale.to(loss.dtype()));
  }
  parallel_.finish();
  nn::sum_of_squares(optimizer_->parameters(), buffers.squared_norms);
  nn::sum_of_squared_values(optimizer_->parameters(), buffers.squared_weights, copies_);
}

void Trainer::apply(const nn::Rates& lr) {
  check(grad_norm_.has_value(), "trainer",
        "apply() needs the gradients of a forward_backward() that was neither applied nor discarded");
  const double factor = nn::clip_factor(*grad_norm_, clip_);
  const bool replays = step_.captured();
  if (replays) optimizer_->prepare(lr, factor);  // to the device, where a replay reads them
  if (!replays) optimizer_->step(lr, factor);
  step_.update([&] {
    if (replays) optimizer_->apply();
    broadcast_parameters();
  });
  if (average_) average_->update(optimizer_->steps());
  discard();
}

// The updated pieces -> all ranks -> the copies that the model computes with.
void Trainer::broadcast_parameters() {
  parallel_.gather_parameters();
  masters_.refresh_others();
}

void Trainer::discard() {
  grad_norm_.reset();
  nn::zero_grad(masters_);
  optimizer_->zero_grad();
}

}  // namespace braid::models
