// The mean loss over batches, without gradients. Under StrictBits the sum over batches has no order: of batches of one
// sample it is the same on every mesh of data ranks.
#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/token_losses.h"
#include "braid/autograd/ops.h"
#include "braid/models/exact_sum.h"
#include "braid/models/training/trainer.h"

namespace braid::models {

double evaluate(const Model& model, const std::vector<Batch>& batches, const dist::ProcessMesh& mesh,
                const std::function<bool()>& stop) {
  NoGrad off;
  std::vector<double> losses;
  int64_t tokens = 0;
  const SkipIndexCheck checked;
  for (const Batch& b : batches) {
    if (stop && mesh.world.any(stop())) return NAN;
    if (b.samples() == 0) continue;  // a data rank may have no sample of a batch
    model.check_batch(b);
    tokens += model.count_targets(b);
    const TokenLosses kept;
    const Tensor loss = model.loss_sum(b.to(model.device()));
    losses.push_back(kept.without_z(loss).item());
  }
  if (mesh.tensor.rank() > 0) losses.clear();  // equal on tensor ranks
  const double sum = sum_of(losses, mesh.world);
  tokens = mesh.data.sum(tokens);  // context and tensor ranks have the same targets
  return tokens > 0 ? sum / static_cast<double>(tokens) : NAN;
}

}  // namespace braid::models
