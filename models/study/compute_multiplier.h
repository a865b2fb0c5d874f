// How much compute a variant is worth: the baseline needs m C for the loss that the variant reaches with compute C.
//
// Runs come in pairs of one size, or of one budget where there is one size, and seed: the baseline reaches L_0 with
// C_0, the variant L_1 with C_1. The curve of the baseline turns the difference of losses into compute:
//
//   L(C) = E + A C^-b     least squares of (L(C) - L) / L over the mean losses of the sizes, E >= 0; two sizes: E = 0
//   m = C_0 / C_1  ((L_0 - E) / (L_1 - E))^(1/b)
//
// So the curve need not pass through L_0: only its slope counts, from the loss of the baseline to that of the variant.
//
// Intervals of 95 %: percentiles over draws of new means. The means of ln L_0 and of ln(L_1 / L_0) over the n seeds of
// a size are drawn as the measured one plus its standard error times a value of Student's distribution with n - 1
// degrees, and the curve is fitted again. An interval is infinite above where the variant comes as low as E. A curve of
// another form is not covered.
#pragma once
#include <vector>

#include "braid/models/study/intervals.h"
#include "braid/tensor/random.h"

namespace braid::models {

// The pairs of one size. All numbers > 0, in any units.
struct ComputePairs {
  double baseline_compute = 0, variant_compute = 0;
  std::vector<double> baseline, variant;  // losses, seed by seed
};

// The multiplier at each size. Error(setting) for fewer than 2 sizes, for a size with fewer than 2 pairs, for numbers
// that are not positive, and for a baseline whose mean loss does not fall with compute.
std::vector<Estimate> compute_multipliers(const std::vector<ComputePairs>& sizes, RandomKey key,
                                          int64_t samples = 1000);

}  // namespace braid::models
