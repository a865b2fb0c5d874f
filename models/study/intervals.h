// Means and differences with their intervals.
//
//   mean of x_1 ... x_n           mean +- t(n-1) s / sqrt(n)          s: standard deviation with n - 1
//   difference of paired runs     the same of d_i = x_i - y_i, where x_i and y_i have the same seed and data
//
// t(f) is the 97.5 % quantile of Student's distribution with f degrees of freedom: the intervals are of 95 % for values
// that are normal, however few.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "braid/tensor/random.h"

namespace braid::models {

struct Estimate {
  double value = 0, low = 0, high = 0;
  bool contains(double x) const { return low <= x && x <= high; }
};

// degrees >= 1
double student_quantile_975(int64_t degrees);
double student_two_sided(double t, int64_t degrees);  // P(|T| >= t) for t >= 0
// A normal value, number i of a stream (Box and Muller).
double normal_value(uint64_t i, RandomKey key);
double median(std::vector<double> values);  // at least one; of an even number, the mean of the middle two
struct Mean {
  double value = 0, error = 0;  // error: s / sqrt(n); NaN for one value
  int64_t degrees = 0;          // n - 1
};
// Error(misuse) for no values.
Mean mean_of(std::span<const double> values);
// x - y, pair by pair. Error(misuse) for different lengths.
std::vector<double> differences_of(std::span<const double> x, std::span<const double> y);
// Infinite bounds for one value. Error(misuse) for none.
Estimate mean_with_interval(std::span<const double> values);
// The mean of x - y, pair by pair. Error(misuse) as differences_of().
Estimate paired_difference(std::span<const double> x, std::span<const double> y);

}  // namespace braid::models
