// expect: next  adamw_step: decoupled decay
#pragma once
#define adamw_step adamw_step_right
#include "../exercise.h"
#undef adamw_step

namespace exercise {

inline void adamw_step(Tensor p, const Tensor& g, Tensor m, Tensor v, int64_t t, AdamwSettings s) {
  const double decay = s.decay;
  s.decay = 0;
  adamw_step_right(p, g + p * decay, m, v, t, s);
}

}  // namespace exercise
