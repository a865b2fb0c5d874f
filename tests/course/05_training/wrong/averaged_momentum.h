// expect: next  sgd_step: momentum
#pragma once
#define sgd_step sgd_step_right
#include "../exercise.h"
#undef sgd_step

namespace exercise {

inline void sgd_step(Tensor p, const Tensor& g, Tensor u, double lr, double momentum, double decay) {
  u.copy_(u * momentum + (g + p * decay) * (1 - momentum));
  p.copy_(p - u * lr);
}

}  // namespace exercise
