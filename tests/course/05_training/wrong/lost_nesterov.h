// expect: p \(3, 5\) after update 2, element
#pragma once
#define muon_step muon_step_right
#include "../exercise.h"
#undef muon_step

namespace exercise {

inline void muon_step(Tensor p, const Tensor& g, Tensor m, double lr, double momentum, double decay) {
  m.copy_(m * momentum + g);
  const double scale = 0.2 * std::sqrt(static_cast<double>(std::max(p.dim(0), p.dim(1))));
  p.copy_(p - (newton_schulz(m) * scale + p * decay) * lr);
}

}  // namespace exercise
