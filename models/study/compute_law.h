// How the loss falls with compute, and how much compute a variant is worth.
//
//   L(C) = a C^-b:  ln L = ln a - b ln C, by least squares over runs of (C, L), each with a relative noise
//
// Compute multiplier of a variant over a baseline at compute C: the baseline needs m C for the loss that the variant
// reaches with C.  a_0 (m C)^-b_0 = L_1(C):
//
//   ln m = (ln a_0 - ln L_1(C)) / b_0 - ln C,   ln L_1(C) = ln a_1 - b_1 ln C
//
// Intervals of 95 %: estimate +- t(n - p) s, where s is the standard deviation over bootstrap samples: residuals,
// scaled by 1 / sqrt(1 - leverage) as those of a fit are too small, are drawn again and the law is fitted again (Efron,
// 1979; Davison and Hinkley, 1997, 6.2). n runs, p fitted numbers. Over one or two tens of compute an irreducible loss
// cannot be told from a smaller b; beyond the runs such a law is no forecast.
#pragma once
#include <vector>

#include "braid/models/study/intervals.h"
#include "braid/tensor/random.h"

namespace braid::models {

struct ComputeRun {
  double compute = 0, loss = 0;  // both > 0, in any units
};

struct ComputeLaw {
  double log_a = 0, b = 0;
  double log_loss(double compute) const;
};
// Error(setting) for fewer than 2 different computes.
ComputeLaw fit_compute_law(const std::vector<ComputeRun>& runs);

// At the compute `at`, from at least 3 runs of each. Error(setting) for fewer, or for a baseline whose loss does not
// fall.
Estimate compute_multiplier(const std::vector<ComputeRun>& baseline, const std::vector<ComputeRun>& variant, double at,
                            RandomKey key, int64_t samples = 1000);

}  // namespace braid::models
