// The update rules of optimizers: each formula once, for every device. They work element by element.
//
// To add a rule: its enumerator, before `count`, and its Update. nn/optim/adding_an_optimizer.md has the steps.
#pragma once
#include <utility>

#include "braid/tensor/kernels/adamw.h"

namespace braid {

enum class UpdateRule : unsigned char {
  adamw,
  sgd,
  momentum,
  // (new rules here)
  count  // of the rules above
};

// Made on the host from UpdateStep::constants, in the accumulation type A (float or double). A call takes a parameter's
// element x, its gradient g before grad_scale, its elements of the state tensors, which it updates, and its weight
// decay; it returns the new x.
template <UpdateRule rule, class A>
struct Update;

template <class A>
struct Update<UpdateRule::adamw, A> : AdamWUpdate<A> {
  using AdamWUpdate<A>::AdamWUpdate;
};

// x -= lr (grad_scale * gradient + wd x)
template <class A>
struct Update<UpdateRule::sgd, A> {
  static constexpr int states = 0;

  explicit Update(const std::array<double, 4>&) {}

  BRAID_HD A operator()(A x, A gradient, A*, A weight_decay, const StepScalars<A>& now) const {
    const A g = decayed_gradient(gradient, now.grad_scale, weight_decay, x);
    return x - now.lr * g;
  }
};

// g = grad_scale * gradient + wd x,   u = f u + g,   x -= lr u
template <class A>
struct Update<UpdateRule::momentum, A> {
  static constexpr int states = 1;  // u
  A keep;

  explicit Update(const std::array<double, 4>& c) : keep(A(c[0])) {}  // f

  BRAID_HD A operator()(A x, A gradient, A* state, A weight_decay, const StepScalars<A>& now) const {
    const A g = decayed_gradient(gradient, now.grad_scale, weight_decay, x);
    state[0] = keep * state[0] + g;
    return x - now.lr * state[0];
  }
};

namespace detail {
template <class F, size_t... i>
void visit_each(UpdateRule rule, F& f, std::index_sequence<i...>) {
  (void)((rule == static_cast<UpdateRule>(i) && (f.template operator()<static_cast<UpdateRule>(i)>(), true)) || ...);
}
}  // namespace detail

// visit(rule, [&]<UpdateRule r>() { ... }) makes a rule that is known at run time a template argument.
template <class F>
void visit(UpdateRule rule, F&& f) {
  detail::visit_each(rule, f, std::make_index_sequence<static_cast<size_t>(UpdateRule::count)>());
}

}  // namespace braid
