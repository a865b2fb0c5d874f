// AdamW's update of one element (Loshchilov and Hutter, arXiv 1711.05101). With g = grad_scale * gradient and t the
// number of the update from 1:
//   m = b1 m + (1-b1) g,   v = b2 v + (1-b2) g^2,   x -= lr (mh / (sqrt(vh) + eps) + wd x)
// where mh = m / (1 - b1^t), vh = v / (1 - b2^t). Adam (coupled): g += wd x first, and no wd in the update.
#pragma once
#include <cmath>

#include "braid/tensor/kernels/optimizer.h"

namespace braid {

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

template <class A>
struct AdamWUpdate {
  static constexpr int states = 2;  // m, v
  A b1, b2, c1, c2, eps;
  bool coupled;

  explicit AdamWUpdate(const std::array<double, 4>& c)  // beta1, beta2, eps, 1 for Adam
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

}  // namespace braid
