// Leaves: tensors that collect a gradient, and what is kept with them.
#include <mutex>

#include "braid/autograd/detail/accumulate.h"
#include "braid/autograd/hooks.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/base/lock_at_fork.h"
#include "braid/tensor/base/recording.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"

namespace braid {

Tensor& require_grad(Tensor& x, bool on) {
  check(is_float(x.dtype()), "require_grad",
        [&] { return str("a tensor of ", x.dtype(), " has no gradient; cast() it to a floating-point type"); });
  check(!x.has_history(), "require_grad", "the tensor is the result of a recorded op, no leaf; take x.detach()");
  if (on != requires_grad(x)) x.set_node(on ? std::make_shared<Node>() : nullptr, false);
  return x;
}

namespace {

using Hooks = std::shared_ptr<const detail::GradHooks>;

// The gradient of a leaf, which threads take, add to and put back: whoever finds one put back meanwhile adds that too.
class LeafGradients {
 public:
  LeafGradients() { detail::lock_at_fork(mutex_, detail::ForkLevel::first); }  // it may release memory
  // lent: the sum again where somebody else reads it, such as a hook on another thread, so that it is not added to in
  // place.
  struct Taken {
    Tensor sum, lent;
  };
  Taken take(Node& leaf) {
    const std::lock_guard lock(mutex_);
    Taken taken{std::exchange(leaf.gradient, {}), {}};
    if (taken.sum && !taken.sum.unique_storage()) taken.lent = taken.sum;
    return taken;
  }
  // False where another sum has been put meanwhile. With hooks `sum` stays a handle, for them to read.
  bool put(Node& leaf, Tensor& sum, Hooks& hooks) {
    const std::lock_guard lock(mutex_);
    if (leaf.gradient) return false;
    hooks = leaf.hooks;
    leaf.gradient = hooks ? sum : std::move(sum);
    return true;
  }
  // Ends the reading of a sum: only after this does take() find it alone.
  void give_back(Tensor& sum) {
    const std::lock_guard lock(mutex_);
    sum = Tensor();
  }
  // Replaces the list of hooks by what change(list) makes of it.
  template <class Change>
  void change_hooks(Node& leaf, Change change) {
    const std::lock_guard lock(mutex_);
    detail::GradHooks list = leaf.hooks ? *leaf.hooks : detail::GradHooks{};
    change(list);
    leaf.hooks = list.empty() ? nullptr : std::make_shared<const detail::GradHooks>(std::move(list));
  }

 private:
  std::mutex mutex_;  // for the moment of an exchange alone: one serves all leaves
};

LeafGradients& leaf_gradients() {
  static LeafGradients& instance = *new LeafGradients;  // until the program ends
  return instance;
}

void call_hooks(const detail::GradHooks& hooks, Tensor sum) {
  struct Reading {
    Tensor sum;
    ~Reading() { leaf_gradients().give_back(sum); }
  } reading{std::move(sum)};
  const uint32_t version = reading.sum.storage().version();
  for (const std::shared_ptr<const GradHook>& hook : hooks) {
    (*hook)(reading.sum);
    check(reading.sum.storage().version() == version, "on_grad",
          "a hook wrote to the gradient in place; replace it by tap() on the way, or by set_grad() after the pass");
  }
}

}  // namespace

void detail::accumulate(Tensor& sum, Tensor g) {
  if (sum && sum.dtype() != g.dtype()) {  // one has 16 bits
    sum = cast(sum, DType::f32);
    g = cast(g, DType::f32);
  }
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
  LeafGradients& gradients = leaf_gradients();
  Tensor sum;
  {
    LeafGradients::Taken before = gradients.take(leaf);
    sum = std::move(before.sum);
    if (sum)
      accumulate(sum, std::move(g));
    else
      sum = own(std::move(g));
  }
  count_as(sum, MemoryUse::gradients);
  Hooks hooks;
  while (!gradients.put(leaf, sum, hooks)) {
    LeafGradients::Taken other = gradients.take(leaf);
    if (other.sum) accumulate(sum, std::move(other.sum));
  }
  if (hooks) call_hooks(*hooks, std::move(sum));
}

namespace {
Node& leaf_node(const Tensor& x, const char* op) {
  check(requires_grad(x) && !x.has_history(), op,
        "needs a leaf, made by require_grad() (a parameter); of a result see tap() and grad(y, {x})");
  return *x.node();
}
}  // namespace

Tensor grad(const Tensor& leaf) { return leaf_node(leaf, "grad").gradient; }
void zero_grad(const Tensor& leaf) { leaf_node(leaf, "zero_grad").gradient = Tensor(); }
void set_grad(const Tensor& leaf, Tensor gradient) {
  const auto sums_of = [](const Tensor& wide, const Tensor& narrow) {  // f32 of bf16 or f16
    return wide.dtype() == DType::f32 && accumulate_type(narrow.dtype()) == DType::f32;
  };
  const bool fits = gradient.dtype() == leaf.dtype() || sums_of(leaf, gradient) || sums_of(gradient, leaf);
  check(gradient.shape() == leaf.shape() && fits, "set_grad", [&] {
    return str("the gradient is ", gradient.dtype(), " ", gradient.shape(), ", the parameter ", leaf.dtype(), " ",
               leaf.shape());
  });
  leaf_node(leaf, "set_grad").gradient = std::move(gradient);
}

HookHandle on_grad(const Tensor& leaf, GradHook hook) {
  check(bool(hook), "on_grad", "needs a function; remove() of the handle that on_grad() returned takes a hook away");
  Node& node = leaf_node(leaf, "on_grad");
  const auto shared = std::make_shared<const GradHook>(std::move(hook));
  leaf_gradients().change_hooks(node, [&](detail::GradHooks& list) { list.push_back(shared); });
  return {leaf.node(), shared};
}

void HookHandle::remove() {
  const std::shared_ptr<Node> leaf = leaf_.lock();
  const std::shared_ptr<const GradHook> hook = hook_.lock();
  if (leaf && hook) leaf_gradients().change_hooks(*leaf, [&](detail::GradHooks& list) { std::erase(list, hook); });
  hook_.reset();
}

}  // namespace braid
