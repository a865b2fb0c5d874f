#include "braid/autograd/recompute.h"

namespace braid {

Tensor recompute(Segment f, const std::vector<Tensor>& inputs) {
  Tensor y;
  {
    NoGrad off;
    y = f(inputs);
  }
  // f may use parameters even when no input requires a gradient, so the segment is always recorded when recording is
  // on.
  return record_segment("recompute", y, inputs, [f = std::move(f), inputs](const Tensor& dy) -> Grads {
    std::vector<Tensor> leaves;
    for (const Tensor& x : inputs) {
      leaves.push_back(x ? x.detach() : Tensor());
      if (requires_grad(x)) require_grad(leaves.back());
    }
    EnableGrad on;
    Tensor again;
    {
      MemoryScope scope(MemoryUse::activations);
      again = f(leaves);
    }
    if (requires_grad(again)) backward(again, dy);
    Grads grads;
    for (const Tensor& leaf : leaves) grads.push_back(requires_grad(leaf) ? grad(leaf) : Tensor());
    return grads;
  });
}

}  // namespace braid
