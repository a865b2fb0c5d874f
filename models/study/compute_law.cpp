#include "braid/models/study/compute_law.h"

#include <cmath>

#include "braid/tensor/error.h"

namespace braid::models {

namespace {

// Runs of one law as points, with what a bootstrap needs.
struct Points {
  std::vector<double> x, y, residuals;  // ln C, ln L, scaled residuals about the law
  ComputeLaw law;
};

ComputeLaw fit(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  double mx = 0, my = 0, xx = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) mx += x[i] / n, my += y[i] / n;
  for (size_t i = 0; i < x.size(); ++i) xx += (x[i] - mx) * (x[i] - mx), xy += (x[i] - mx) * (y[i] - my);
  const double b = -xy / xx;
  return {my + b * mx, b};
}

Points points_of(const std::vector<ComputeRun>& runs) {
  Points p;
  double mean = 0, xx = 0;
  for (const ComputeRun& run : runs) {
    p.x.push_back(std::log(run.compute));
    p.y.push_back(std::log(run.loss));
    mean += p.x.back() / static_cast<double>(runs.size());
  }
  p.law = fit_compute_law(runs);
  for (const double x : p.x) xx += (x - mean) * (x - mean);
  for (size_t i = 0; i < p.x.size(); ++i) {
    const double leverage = 1 / static_cast<double>(p.x.size()) + (p.x[i] - mean) * (p.x[i] - mean) / xx;
    p.residuals.push_back((p.y[i] - p.law.log_a + p.law.b * p.x[i]) / std::sqrt(std::max(1e-12, 1 - leverage)));
  }
  return p;
}

// The law of the same computes with residuals drawn again.
ComputeLaw again(const Points& p, RandomKey key, uint64_t sample) {
  std::vector<double> y;
  for (size_t i = 0; i < p.x.size(); ++i)
    y.push_back(p.law.log_a - p.law.b * p.x[i] +
                p.residuals[random_bits(sample * p.x.size() + i, key) % p.residuals.size()]);
  return fit(p.x, y);
}

double log_multiplier(const ComputeLaw& baseline, const ComputeLaw& variant, double at) {
  return (baseline.log_a - variant.log_loss(at)) / baseline.b - std::log(at);
}

}  // namespace

double ComputeLaw::log_loss(double compute) const { return log_a - b * std::log(compute); }

ComputeLaw fit_compute_law(const std::vector<ComputeRun>& runs) {
  std::vector<double> x, y;
  bool spread = false;
  for (const ComputeRun& run : runs) {
    check(run.compute > 0 && run.loss > 0, ErrorKind::setting, [&] {
      return "a compute law is of positive computes and losses: found " + std::to_string(run.compute) + " and " +
             std::to_string(run.loss);
    });
    x.push_back(std::log(run.compute));
    y.push_back(std::log(run.loss));
    spread |= x.back() != x.front();
  }
  check(spread, ErrorKind::setting, "a compute law needs runs of at least 2 different computes");
  return fit(x, y);
}

Estimate compute_multiplier(const std::vector<ComputeRun>& baseline, const std::vector<ComputeRun>& variant, double at,
                            RandomKey key, int64_t samples) {
  check(baseline.size() >= 3 && variant.size() >= 3, ErrorKind::setting, [&] {
    return str("an interval of a compute multiplier: expected at least 3 runs of each, found ", baseline.size(),
               " and ", variant.size());
  });
  const Points base = points_of(baseline), other = points_of(variant);
  check(base.law.b > 0, ErrorKind::setting,
        "a compute multiplier: the loss of the baseline does not fall with compute");
  const double middle = log_multiplier(base.law, other.law, at);
  double squares = 0;
  for (int64_t s = 0; s < samples; ++s) {
    const double value = log_multiplier(again(base, child(key, "baseline"), static_cast<uint64_t>(s)),
                                        again(other, child(key, "variant"), static_cast<uint64_t>(s)), at);
    squares += (value - middle) * (value - middle);
  }
  const int64_t degrees = std::ssize(baseline) + std::ssize(variant) - 4;
  const double half = student_quantile_975(degrees) * std::sqrt(squares / static_cast<double>(samples));
  return {std::exp(middle), std::exp(middle - half), std::exp(middle + half)};
}

}  // namespace braid::models
