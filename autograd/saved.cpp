#include "braid/autograd/saved.h"

#include "braid/autograd/detail/node.h"

namespace braid {

std::shared_ptr<detail::Recomputed> detail::recomputed(const Tensor& x) {
  return x && x.node() ? x.node()->again : nullptr;
}

Tensor recomputable(Tensor y, std::function<Tensor()> compute) {
  if (y.node() && !y.node()->is_leaf() && y.device() == kCpu)
    y.node()->again = std::make_shared<detail::Recomputed>(detail::Recomputed{std::move(compute), {}});
  return y;
}

Tensor Saved::get() const {
  if (!again_) return values_;
  if (!again_->value) {
    const NoGrad off;
    again_->value = again_->compute();
  }
  return again_->value;
}

}  // namespace braid
