// A solution of exercise 14.
#pragma once
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "course/checks.h"

namespace exercise {

using Losses = std::vector<double>;

constexpr double kT[] = {0, 0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};

struct Interval {
  double low = 0, high = 0;
};

inline double mean(const Losses& x) { return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size()); }

inline double deviation(const Losses& x) {
  const double m = mean(x);
  double sum = 0;
  for (const double value : x) sum += (value - m) * (value - m);
  return std::sqrt(sum / static_cast<double>(x.size() - 1));
}

inline Interval interval(const Losses& x) {
  const double half = kT[x.size()] * deviation(x) / std::sqrt(static_cast<double>(x.size()));
  return {mean(x) - half, mean(x) + half};
}

inline Interval paired(const Losses& old_losses, const Losses& new_losses) {
  Losses differences;
  for (size_t i = 0; i < old_losses.size(); ++i) differences.push_back(new_losses[i] - old_losses[i]);
  return interval(differences);
}

inline std::string verdict(const Interval& difference) {
  return difference.high < 0 ? "better" : difference.low > 0 ? "worse" : "not decided";
}

inline int pairs_needed(double effect, double s) {
  for (int n = 2; n <= 11; ++n) {
    if (kT[n] * s / std::sqrt(n) < effect) return n;
  }
  return 0;
}

inline double false_alarm(int m) { return 1 - std::pow(0.95, m); }

inline std::vector<double> holm(const std::vector<double>& p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double largest = 0;
  for (size_t k = 0; k < order.size(); ++k) {
    largest = std::max(largest, std::min(1.0, static_cast<double>(p.size() - k) * p[order[k]]));
    adjusted[order[k]] = largest;
  }
  return adjusted;
}

}  // namespace exercise
