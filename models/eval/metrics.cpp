#include "braid/models/eval/metrics.h"

#include <cmath>
#include <limits>

namespace braid::models::eval {

double sum(std::span<const double> values) {
  double total = 0, lost = 0;
  for (const double x : values) {
    const double next = total + x;
    lost += std::abs(total) >= std::abs(x) ? (total - next) + x : (x - next) + total;
    total = next;
  }
  return std::isfinite(lost) ? total + lost : total;  // of infinities nothing is rounded away
}

Metric mean(std::string name, std::span<const double> values) {
  const std::vector<double> ones(values.size(), 1.0);
  return ratio(std::move(name), values, ones);
}

Metric ratio(std::string name, std::span<const double> a, std::span<const double> b) {
  Metric metric{.name = std::move(name), .value = std::numeric_limits<double>::quiet_NaN(), .error = {}};
  const double weight = sum(b);
  if (a.empty() || !(weight > 0)) return metric;
  metric.value = sum(a) / weight;
  if (a.size() < 2) return metric;
  std::vector<double> squares(a.size());
  for (size_t i = 0; i < a.size(); ++i) squares[i] = std::pow(a[i] - metric.value * b[i], 2);
  const auto n = static_cast<double>(a.size());
  metric.error = std::sqrt(n / (n - 1) * sum(squares)) / weight;
  return metric;
}

Metric exponential(std::string name, const Metric& x) {
  Metric metric{.name = std::move(name), .value = std::exp(x.value), .error = {}};
  if (x.error) metric.error = metric.value * *x.error;
  return metric;
}

Metric scaled(std::string name, const Metric& x, double factor) {
  Metric metric{.name = std::move(name), .value = factor * x.value, .error = {}};
  if (x.error) metric.error = std::abs(factor) * *x.error;
  return metric;
}

}  // namespace braid::models::eval
