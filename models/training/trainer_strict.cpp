#include "braid/models/training/trainer_strict.h"

#include "braid/autograd/detail/check.h"
#include "braid/autograd/record.h"
#include "braid/distributed/parallel/tree_sum.h"
#include "braid/models/training/exact_sum.h"
#include "braid/models/training/source_losses.h"
#include "braid/nn/optim/clip.h"
#include "braid/tensor/strict.h"

namespace braid::models {

void check_strict_mesh(const dist::ProcessMesh& mesh) {
  check(!strict_bits() || mesh.context.size() * mesh.tensor.size() == 1, ErrorKind::setting, [&] {
    return str(
        "run.strict = true has the same bits on any number of data ranks: expected parallel.context = 1 and "
        "parallel.tensor = 1, found ",
        mesh.context.size(), " and ", mesh.tensor.size());
  });
}

std::vector<Batch> sample_by_sample(const std::vector<Batch>& batches) {
  std::vector<Batch> samples;
  for (const Batch& b : batches)
    for (int64_t i = 0; i < b.samples(); ++i) samples.push_back(b.slice(i, i + 1));
  return samples;
}

// As compute_gradients(), of batches of one sample.
void Trainer::compute_strict_gradients(const StepBuffers& buffers) {
  const SkipIndexCheck checked;
  const int64_t count = std::ssize(buffers.batches), ranks = mesh_.data.size();
  std::vector<dist::Range> samples;  // of each data rank
  int64_t end = 0;
  for (const int64_t n : mesh_.data
                             .all_gather(from_vector(std::vector<int64_t>{count}, {1}), 0,
                                         dist::even_partition(ranks, static_cast<int>(ranks)))
                             .to_vector<int64_t>())
    samples.push_back({end, end + n}), end += n;
  const int64_t first = samples.at(static_cast<size_t>(mesh_.data.rank())).begin;
  dist::TreeSum sum;
  for (int64_t i = 0; i < count; ++i) {
    MemoryScope scope(MemoryUse::activations);
    masters_.attach_cast();
    const Tensor loss = loss_of(*objective_, model_, i, buffers);
    backward(loss, buffers.loss_scale.to(loss.dtype()));
    dist::TreeSum::Terms terms;
    for (const nn::NamedTensor& p : parameters_) terms.push_back(requires_grad(p.value) ? grad(p.value) : Tensor());
    nn::zero_grad(masters_);
    sum.add({0, first + i}, std::move(terms));
  }
  parallel_.finish(std::move(sum), parameters_, samples);
  nn::sum_of_squares(optimizer_->parameters(), buffers.squared_norms);
  nn::sum_of_squared_values(optimizer_->parameters(), buffers.squared_weights, copies_);
}

void make_exact(StepMetrics& metrics, const StepSums& sums, double loss_scale,
                const std::vector<nn::NamedTensor>& pieces, const dist::ProcessMesh& mesh) {
  metrics.loss = exact_sum(sums.losses, mesh.data) * loss_scale;
  metrics.grad_norm = std::sqrt(exact_sum_of_squares(pieces, mesh.world));
}

}  // namespace braid::models
