// Leaves: tensors that collect a gradient, and what is kept with them.
#include <mutex>

#include "braid/autograd/detail/accumulate.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/base/lock_at_fork.h"
#include "braid/tensor/base/recording.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"

namespace braid {

Tensor& require_grad(Tensor& x, bool on) {
  check(is_float(x.dtype()), "require_grad", [&] { return str("a tensor of ", x.dtype(), " has no gradient"); });
  check(!x.has_history(), "require_grad", "the tensor is the result of a recorded op");
  if (on != requires_grad(x)) x.set_node(on ? std::make_shared<Node>() : nullptr, false);
  return x;
}

namespace {

// The gradient of a leaf, which threads take, add to and put back: whoever finds one put back meanwhile adds that too.
class LeafGradients {
 public:
  LeafGradients() { detail::lock_at_fork(mutex_); }
  Tensor take(Node& leaf) {
    const std::lock_guard lock(mutex_);
    return std::exchange(leaf.gradient, {});
  }
  bool put(Node& leaf, const Tensor& sum) {
    const std::lock_guard lock(mutex_);
    if (leaf.gradient) return false;
    leaf.gradient = sum;
    return true;
  }

 private:
  std::mutex mutex_;  // for the moment of an exchange alone: one serves all leaves
};

}  // namespace

void detail::accumulate(Tensor& sum, Tensor g) {
  if (!sum) {
    sum = std::move(g);
  } else if (detail::recording) {
    sum = add(sum, g);
  } else if (sum.unique_storage() && sum.is_contiguous()) {
    sum.add_(g);
  } else {
    Tensor total = empty_like(sum);
    backend(sum.device()).pointwise.binary(BinaryOp::add, sum, g, total);
    sum = total;
  }
}

Tensor detail::own(Tensor g) { return g.unique_storage() && g.is_contiguous() ? g : g.clone(); }

void detail::accumulate_in_leaf(Node& leaf, Tensor g) {
  static LeafGradients& gradients = *new LeafGradients;  // until the program ends
  Tensor sum = gradients.take(leaf);
  if (sum)
    accumulate(sum, std::move(g));
  else
    sum = own(std::move(g));
  count_as(sum, MemoryUse::gradients);
  while (!gradients.put(leaf, sum)) {
    if (Tensor other = gradients.take(leaf)) accumulate(sum, std::move(other));
  }
}

namespace {
Node& leaf_node(const Tensor& x, const char* op) {
  check(requires_grad(x) && !x.has_history(), op, "needs a leaf, made by require_grad() (a parameter)");
  return *x.node();
}
}  // namespace

Tensor grad(const Tensor& leaf) { return leaf_node(leaf, "grad").gradient; }
void zero_grad(const Tensor& leaf) { leaf_node(leaf, "zero_grad").gradient = Tensor(); }
void set_grad(const Tensor& leaf, Tensor gradient) {
  const bool narrow = leaf.dtype() == DType::f32 && (gradient.dtype() == DType::bf16 || gradient.dtype() == DType::f16);
  check(gradient.shape() == leaf.shape() && (gradient.dtype() == leaf.dtype() || narrow), "set_grad", [&] {
    return str("the gradient is ", gradient.dtype(), " ", gradient.shape(), ", the parameter ", leaf.dtype(), " ",
               leaf.shape());
  });
  leaf_node(leaf, "set_grad").gradient = std::move(gradient);
}
void on_grad(const Tensor& leaf, std::function<void(const Tensor&)> hook) {
  leaf_node(leaf, "on_grad").hook = std::move(hook);
}

}  // namespace braid
