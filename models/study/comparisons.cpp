#include "braid/models/study/comparisons.h"

#include <algorithm>
#include <cmath>

#include "braid/models/study/intervals.h"
#include "braid/tensor/error.h"

namespace braid::models {

double paired_p_value(std::span<const double> x, std::span<const double> y) {
  check(x.size() == y.size(), "paired_p_value",
        [&] { return str("pairs need as many values on both sides: found ", x.size(), " and ", y.size()); });
  if (x.size() < 2) return std::nan("");
  const auto n = static_cast<double>(x.size());
  double sum = 0, squares = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] - y[i];
  const double mean = sum / n;
  for (size_t i = 0; i < x.size(); ++i) squares += (x[i] - y[i] - mean) * (x[i] - y[i] - mean);
  if (squares == 0) return mean == 0 ? 1 : 0;
  return student_two_sided(std::fabs(mean) * std::sqrt(n / (squares / (n - 1))), std::ssize(x) - 1);
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
