#include "braid/models/training/source_losses.h"

#include "braid/autograd/detail/token_losses.h"
#include "braid/autograd/ops.h"
#include "braid/models/exact_sum.h"
#include "braid/models/training/trainer.h"
#include "braid/tensor/strict.h"

namespace braid::models {

Tensor loss_of(const Objective& objective, const Model& model, int64_t i, const StepBuffers& buffers) {
  const TokenLosses kept;
  Tensor loss = objective.loss_sum(model, buffers.batches.at(static_cast<size_t>(i)));
  Tensor reported = buffers.losses.sliced(0, i, i + 1);
  reported.copy_(kept.without_z(loss).detach().reshaped({1}));
  const int64_t B = buffers.sample_losses.numel() / std::ssize(buffers.batches);
  if (B == 0) return loss;
  const Tensor& terms = kept.terms();  // (B T)
  Tensor samples = buffers.sample_losses.sliced(0, i * B, (i + 1) * B);
  const NoGrad off;
  if (terms && terms.numel() % B == 0)
    samples.copy_(sum(terms.reshaped({B, terms.numel() / B}), Axes{1}));
  else
    samples.fill(NAN);
  return loss;
}

// The sums over samples and ranks of loss and targets of each source -> means. Under StrictBits each rank has samples
// of its own. Collective.
std::vector<double> Trainer::source_losses(const std::vector<Batch>& batches,
                                           const std::vector<double>& of_samples) const {
  if (sources_ == 0) return {};
  const auto n = static_cast<size_t>(sources_);
  std::vector<double> targets(n);
  std::vector<std::vector<double>> losses(n);  // of the samples
  const bool has_loss = strict_bits() || mesh_.tensor.rank() == 0;
  const bool has_targets = strict_bits() || (mesh_.tensor.rank() == 0 && mesh_.context.rank() == 0);
  size_t sample = 0;
  for (const Batch& b : batches) {
    int64_t i = 0;
    for (const int64_t source : b.at(kSources).to_vector<int64_t>()) {
      check(source >= 0 && source < sources_, ErrorKind::input,
            [&] { return str("a sample is from source ", source, ": expected 0 to ", sources_ - 1); });
      if (has_loss) losses[static_cast<size_t>(source)].push_back(of_samples.at(sample));
      if (has_targets)
        targets[static_cast<size_t>(source)] += static_cast<double>(model_.count_targets(b.slice(i, i + 1)));
      ++i, ++sample;
    }
  }
  std::vector<double> means;
  for (size_t s = 0; s < n; ++s) {
    const double loss = sum_of(losses[s], mesh_.world), count = mesh_.world.sum(targets[s]);
    means.push_back(count > 0 ? loss / count : NAN);
  }
  return means;
}

}  // namespace braid::models
