// Whether differences are more than chance, and what changes when many are looked at.
//
//   t test of pairs   t = d sqrt(n) / s for the mean d and the deviation s (with n - 1) of n differences; p is the
//                     probability of such a |t| or a larger one where the true difference is 0 (Student, n - 1 degrees)
//   Holm (1979)       p_(1) <= ... <= p_(m):  adjusted p_(k) = max over i <= k of min(1, (m - i + 1) p_(i))
//
// With adjusted p below 0.05 the chance of even one false finding among the m is below 5 %, whatever the m depend on.
#pragma once
#include <span>
#include <vector>

namespace braid::models {

// Two-sided p of the mean of x - y, pair by pair. Equal differences give 0, or 1 where they are 0. NaN for fewer than 2
// pairs. Error(misuse) for different lengths.
double paired_p_value(std::span<const double> x, std::span<const double> y);
// In the order of `p`; NaN stays and does not count among the m.
std::vector<double> holm_adjusted(std::span<const double> p);

}  // namespace braid::models
