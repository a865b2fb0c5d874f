// Leaves: tensors that collect a gradient, and what is kept with them.
#include "braid/autograd/detail/node.h"

namespace braid {

Tensor& require_grad(Tensor& x, bool on) {
  check(is_float(x.dtype()), "require_grad", [&] { return str("a tensor of ", x.dtype(), " has no gradient"); });
  check(!x.has_history(), "require_grad", "the tensor is the result of a recorded op");
  if (on != requires_grad(x)) x.set_node(on ? std::make_shared<Node>() : nullptr, false);
  return x;
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
