#include "braid/models/study/comparisons.h"

#include <algorithm>
#include <cmath>

#include "braid/models/study/intervals.h"

namespace braid::models {

double paired_p_value(std::span<const double> x, std::span<const double> y) {
  const std::vector<double> differences = differences_of(x, y);
  if (differences.size() < 2) return std::nan("");
  const Mean d = mean_of(differences);
  if (d.error == 0) return d.value == 0 ? 1 : 0;
  return student_two_sided(std::fabs(d.value) / d.error, d.degrees);
}

std::vector<double> holm_adjusted(std::span<const double> p) {
  std::vector<size_t> order;
  for (size_t i = 0; i < p.size(); ++i)
    if (!std::isnan(p[i])) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return p[i]; });
  std::vector<double> adjusted(p.begin(), p.end());
  double largest = 0;
  for (size_t k = 0; k < order.size(); ++k) {
    largest = std::max(largest, std::min(1.0, static_cast<double>(order.size() - k) * p[order[k]]));
    adjusted[order[k]] = largest;
  }
  return adjusted;
}

}  // namespace braid::models
