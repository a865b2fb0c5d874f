// Exercise 5: three optimizers and a schedule. All tensors are f64, contiguous, without history; p, its gradient g and
// its state have one shape. A step writes to p and its state in place: p.copy_(x) writes, p = x moves the handle alone.
#pragma once
#include <cstdint>

#include "braid/autograd.h"
#include "course/checks.h"

namespace exercise {

using braid::Tensor;

// d = g + decay p;   u <- momentum u + d;   p <- p - lr u
inline void sgd_step(Tensor p, const Tensor& g, Tensor u, double lr, double momentum, double decay) {
  throw course::NotWritten("sgd_step()");
}

struct AdamwSettings {
  double lr, beta1, beta2, eps, decay;
};

// Update number t = 1, 2, ... :
//   m = beta1 m + (1 - beta1) g,   v = beta2 v + (1 - beta2) g^2
//   p -= lr (m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + decay p)
inline void adamw_step(Tensor p, const Tensor& g, Tensor m, Tensor v, int64_t t, const AdamwSettings& settings) {
  throw course::NotWritten("adamw_step()");
}

// u (R, C) with its singular values brought near 1: X = u / |u|, |u| the root of the sum of squares, then five times
//   A = X X^T,   X <- 3.4445 X + (-4.7750 A + 2.0315 A A) X
// Products are matmul, * is by element. Zeros where u is zeros.
inline Tensor newton_schulz(const Tensor& u) { throw course::NotWritten("newton_schulz()"); }

// p is a matrix (R, C).   m = momentum m + g;   p -= lr (0.2 sqrt(max(R, C)) newton_schulz(g + momentum m) + decay p)
inline void muon_step(Tensor p, const Tensor& g, Tensor m, double lr, double momentum, double decay) {
  throw course::NotWritten("muon_step()");
}

// The learning rate of step 0, 1, ... : peak step / warmup below `warmup`, then with u = (step - warmup) / (steps -
// warmup) from peak to final_fraction peak along (1 + cos(pi u)) / 2, and 0 from step `steps` on.
inline double warmup_cosine(int64_t step, double peak, int64_t warmup, int64_t steps, double final_fraction) {
  throw course::NotWritten("warmup_cosine()");
}

}  // namespace exercise
