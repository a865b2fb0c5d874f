// A solution of exercise 5.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "braid/autograd.h"
#include "course/checks.h"

namespace exercise {

using braid::Tensor;

inline void sgd_step(Tensor p, const Tensor& g, Tensor u, double lr, double momentum, double decay) {
  u.copy_(u * momentum + g + p * decay);
  p.copy_(p - u * lr);
}

struct AdamwSettings {
  double lr, beta1, beta2, eps, decay;
};

inline void adamw_step(Tensor p, const Tensor& g, Tensor m, Tensor v, int64_t t, const AdamwSettings& s) {
  m.copy_(m * s.beta1 + g * (1 - s.beta1));
  v.copy_(v * s.beta2 + g * g * (1 - s.beta2));
  const Tensor mean = m / (1 - std::pow(s.beta1, t)), square = v / (1 - std::pow(s.beta2, t));
  p.copy_(p - (mean / (sqrt(square) + s.eps) + p * s.decay) * s.lr);
}

inline Tensor newton_schulz(const Tensor& u) {
  const double size = std::sqrt(sum(square(u)).item());
  Tensor x = size > 0 ? u / size : u;
  for (int step = 0; step < 5; ++step) {
    const Tensor a = matmul(x, transpose(x));
    x = x * 3.4445 + matmul(a * -4.7750 + matmul(a, a) * 2.0315, x);
  }
  return x;
}

inline void muon_step(Tensor p, const Tensor& g, Tensor m, double lr, double momentum, double decay) {
  m.copy_(m * momentum + g);
  const double scale = 0.2 * std::sqrt(static_cast<double>(std::max(p.dim(0), p.dim(1))));
  p.copy_(p - (newton_schulz(g + m * momentum) * scale + p * decay) * lr);
}

inline double warmup_cosine(int64_t step, double peak, int64_t warmup, int64_t steps, double final_fraction) {
  if (step >= steps) return 0;
  if (step < warmup) return peak * static_cast<double>(step) / static_cast<double>(warmup);
  const double u = static_cast<double>(step - warmup) / static_cast<double>(steps - warmup);
  const double a = (1 + std::cos(std::numbers::pi * u)) / 2;
  return peak * (a + final_fraction * (1 - a));
}

}  // namespace exercise
