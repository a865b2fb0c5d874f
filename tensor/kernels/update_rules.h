// The update rules of optimizers: each formula once, for every device. They work element by element.
//
// To add a rule: its enumerator, before `count`, and its Update. nn/optim/adding_an_optimizer.md has the steps.
#pragma once
#include <cmath>
#include <utility>

#include "braid/tensor/kernels/optimizer.h"

namespace braid {

enum class UpdateRule : unsigned char {
  adamw,
  sgd,
  momentum,
  // (new rules here)
  count  // of the rules above
};

// gradient scale + decay x. A GPU's compiler fuses one of the products with the sum, not the same one in neighbouring
// elements; here it is always the first.
template <class A>
BRAID_HD A decayed_gradient(A gradient, A scale, A decay, A x) {
#ifdef __CUDA_ARCH__
  return std::fma(gradient, scale, decay * x);
#else
  return gradient * scale + decay * x;
#endif
}

// Made on the host from UpdateStep::constants, in the accumulation type A (float or double). A call takes a parameter's
// element x, its gradient g before grad_scale, its elements of the state tensors, which it updates, and its weight
// decay; it returns the new x.
template <UpdateRule rule, class A>
struct Update;

// With g = grad_scale * gradient and t the number of the update from 1:
//   m = b1 m + (1-b1) g,   v = b2 v + (1-b2) g^2,   x -= lr (mh / (sqrt(vh) + eps) + wd x)
// with mh = m / (1 - b1^t), vh = v / (1 - b2^t). Adam (coupled): g += wd x first, and no wd in the update.
template <class A>
struct Update<UpdateRule::adamw, A> {
  static constexpr int states = 2;  // m, v
  A b1, b2, c1, c2, eps;
  bool coupled;

  explicit Update(const std::array<double, 4>& c)  // beta1, beta2, eps, 1 for Adam
      : b1(A(c[0])), b2(A(c[1])), c1(A(1 - c[0])), c2(A(1 - c[1])), eps(A(c[2])), coupled(c[3] != 0) {}

  BRAID_HD A operator()(A x, A gradient, A* state, A weight_decay, const StepScalars<A>& now) const {
    const A inside = coupled ? weight_decay : A(0), outside = coupled ? A(0) : weight_decay;
    const A g = decayed_gradient(gradient, now.grad_scale, inside, x);
    const A m = b1 * state[0] + c1 * g, v = b2 * state[1] + c2 * g * g;
    state[0] = m;
    state[1] = v;
    const A update = m * now.first_scale / (std::sqrt(v * now.second_scale) + eps) + outside * x;
    return x - now.lr * update;
  }
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
