// expect: p, element 0 in row-major order: expected -0.1, found -0.0447
#pragma once
#define adamw_step adamw_step_right
#include "../exercise.h"
#undef adamw_step

namespace exercise {

inline void adamw_step(Tensor p, const Tensor& g, Tensor m, Tensor v, int64_t, const AdamwSettings& s) {
  m.copy_(m * s.beta1 + g * (1 - s.beta1));
  v.copy_(v * s.beta2 + g * g * (1 - s.beta2));
  p.copy_(p - (m / (sqrt(v) + s.eps) + p * s.decay) * s.lr);
}

}  // namespace exercise
