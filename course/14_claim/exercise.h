// Exercise 14: what a handful of runs says about a difference.
//
// Losses are lists with one entry per seed; entry i of two lists belongs to the same seed: same data order, same start.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "course/checks.h"

namespace exercise {

using Losses = std::vector<double>;

// t[n]: the factor of a 95 % interval from n runs (Student, n - 1 degrees of freedom), n from 2 to 11.
constexpr double kT[] = {0, 0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};

struct Interval {
  double low = 0, high = 0;
};

inline double mean(const Losses& x) { throw course::NotWritten("mean()"); }

// The deviation of one run from the mean, estimated from n runs: sqrt(sum (x_i - mean)^2 / (n - 1)).
inline double deviation(const Losses& x) { throw course::NotWritten("deviation()"); }

// The 95 % interval of the true mean: mean +- t[n] deviation / sqrt(n), for 2 to 11 runs.
inline Interval interval(const Losses& x) { throw course::NotWritten("interval()"); }

// The interval of the mean of new - old, seed by seed: the differences first.
inline Interval paired(const Losses& old_losses, const Losses& new_losses) { throw course::NotWritten("paired()"); }

// What the interval of new - old says about a loss: "better", "worse" or "not decided".
inline std::string verdict(const Interval& difference) { throw course::NotWritten("verdict()"); }

// The least number of pairs, from 2 to 11, with which an interval is expected to exclude 0 when the true difference is
// `effect` > 0 and pairs deviate by `s`: t[n] s / sqrt(n) < effect. 0 if 11 are not enough.
inline int pairs_needed(double effect, double s) { throw course::NotWritten("pairs_needed()"); }

// The probability that at least one of m independent comparisons without a true difference looks decided at 5 %.
inline double false_alarm(int m) { throw course::NotWritten("false_alarm()"); }

// Holm: p in ascending order, p_(1) <= ... <= p_(m); adjusted p_(k) = max over i <= k of min(1, (m - i + 1) p_(i)).
// In the order of `p`.
inline std::vector<double> holm(const std::vector<double>& p) { throw course::NotWritten("holm()"); }

}  // namespace exercise
