#include "braid/models/study/intervals.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "braid/tensor/error.h"

namespace braid::models {

namespace {

// The distribution function of Student's t >= 0 with f degrees of freedom, by its finite sums (Abramowitz and Stegun
// 26.7.3 and 26.7.4), with angle = atan(t / sqrt(f)).
double student_between(double t, int64_t f) {  // P(-t < T < t)
  const double angle = std::atan(t / std::sqrt(static_cast<double>(f))), c = std::cos(angle), s = std::sin(angle);
  double sum = 0, term = f % 2 == 0 ? 1 : c;
  if (f == 1) return 2 * angle / M_PI;
  for (int64_t k = f % 2 == 0 ? 2 : 3; k <= f; k += 2) {
    sum += term;
    term *= c * c * static_cast<double>(k - 1) / static_cast<double>(k);
  }
  return f % 2 == 0 ? s * sum : 2 / M_PI * (angle + s * sum);
}

}  // namespace

double student_quantile_975(int64_t degrees) {
  check(degrees >= 1, "student_quantile_975", "needs a degree of freedom");
  if (degrees > 1000) return 1.959964 + 2.3723 / static_cast<double>(degrees);
  double low = 0, high = 20;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (student_between(middle, degrees) < 0.95 ? low : high) = middle;
  }
  return low;
}

double student_two_sided(double t, int64_t degrees) {
  check(degrees >= 1, "student_two_sided", "needs a degree of freedom");
  return std::clamp(1 - student_between(t, degrees), 0.0, 1.0);
}

double normal_value(uint64_t i, RandomKey key) {
  const double u = 1 - static_cast<double>(unit(random_bits(2 * i, key))),
               v = static_cast<double>(unit(random_bits(2 * i + 1, key)));
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v);
}

Mean mean_of(std::span<const double> values) {
  check(!values.empty(), "mean_of", "needs a value");
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double x : values) sum += x;
  const double mean = sum / n;
  for (const double x : values) squares += (x - mean) * (x - mean);
  return {mean, std::sqrt(squares / (n - 1) / n), std::ssize(values) - 1};
}

std::vector<double> differences_of(std::span<const double> x, std::span<const double> y) {
  check(x.size() == y.size(), "differences_of",
        [&] { return str("pairs need as many values on both sides: found ", x.size(), " and ", y.size()); });
  std::vector<double> differences;
  for (size_t i = 0; i < x.size(); ++i) differences.push_back(x[i] - y[i]);
  return differences;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

Estimate mean_with_interval(std::span<const double> values) {
  const auto [mean, error, degrees] = mean_of(values);
  constexpr double far = std::numeric_limits<double>::infinity();
  if (degrees == 0) return {mean, -far, far};
  const double half = student_quantile_975(degrees) * error;
  return {mean, mean - half, mean + half};
}

Estimate paired_difference(std::span<const double> x, std::span<const double> y) {
  return mean_with_interval(differences_of(x, y));
}

}  // namespace braid::models
