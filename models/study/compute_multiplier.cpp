#include "braid/models/study/compute_multiplier.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "braid/tensor/error.h"

namespace braid::models {

namespace {

struct Curve {
  double e = 0, b = 0, error = std::numeric_limits<double>::infinity();
};

struct Sizes {
  std::vector<double> x;             // ln C_0 less that of the first size
  std::vector<double> more_compute;  // ln(C_1 / C_0)
  std::vector<double> pairs;
};

std::vector<double> values_of(const std::vector<Mean>& means) {
  std::vector<double> values;
  for (const Mean& mean : means) values.push_back(mean.value);
  return values;
}

// value + error t, with t of Student's distribution.
std::vector<double> drawn_of(const std::vector<Mean>& means, RandomKey key) {
  std::vector<double> values;
  uint64_t i = 0;
  for (const Mean& mean : means) {
    double squares = 0;
    for (int64_t k = 0; k < mean.degrees; ++k) squares += std::pow(normal_value(i++, key), 2);
    values.push_back(mean.value +
                     mean.error * normal_value(i++, key) / std::sqrt(squares / static_cast<double>(mean.degrees)));
  }
  return values;
}

// The best curve with exponent b.
Curve curve_with(const Sizes& sizes, const std::vector<double>& log_loss, double b) {
  double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0;
  const auto each = [&](const auto& use) {
    for (size_t i = 0; i < sizes.x.size(); ++i) {
      const double loss = std::exp(log_loss[i]);
      use(sizes.pairs[i] / (loss * loss), std::exp(-b * sizes.x[i]), loss);
    }
  };
  each([&](double weight, double x, double y) {
    w += weight, wx += weight * x, wxx += weight * x * x, wy += weight * y, wxy += weight * x * y;
  });
  double e = (wy * wxx - wxy * wx) / (w * wxx - wx * wx);
  if (!(e > 0) || sizes.x.size() == 2) e = 0;
  const double a = (wxy - e * wx) / wxx;
  Curve curve{e, b, 0};
  each([&](double weight, double x, double y) { curve.error += weight * std::pow(e + a * x - y, 2); });
  return curve;
}

// The exponent from a grid of 0.02 to 3, then by golden sections.
Curve fit(const Sizes& sizes, const std::vector<double>& log_loss) {
  constexpr double kStep = 1.05;
  Curve best;
  for (double b = 0.02; b < 3; b *= kStep)
    if (const Curve curve = curve_with(sizes, log_loss, b); curve.error < best.error) best = curve;
  const double golden = (std::sqrt(5.0) - 1) / 2;
  double low = best.b / kStep, high = best.b * kStep;
  for (int i = 0; i < 60; ++i) {
    const Curve left = curve_with(sizes, log_loss, high - golden * (high - low)),
                right = curve_with(sizes, log_loss, low + golden * (high - low));
    (left.error < right.error ? high : low) = left.error < right.error ? right.b : left.b;
  }
  return curve_with(sizes, log_loss, (low + high) / 2);
}

// ln m of each size.
std::vector<double> log_multipliers(const Sizes& sizes, const std::vector<double>& log_loss,
                                    const std::vector<double>& change) {
  const Curve curve = fit(sizes, log_loss);
  std::vector<double> result;
  for (size_t i = 0; i < log_loss.size(); ++i) {
    const double from = std::exp(log_loss[i]) - curve.e, to = std::exp(log_loss[i] + change[i]) - curve.e;
    const double log_m = std::log(from / to) / curve.b - sizes.more_compute[i];
    result.push_back(from > 0 && to > 0 ? log_m : std::numeric_limits<double>::infinity());
  }
  return result;
}

}  // namespace

std::vector<Estimate> compute_multipliers(const std::vector<ComputePairs>& groups, RandomKey key, int64_t samples) {
  check(groups.size() >= 2, ErrorKind::setting, [&] {
    return str("a compute multiplier: expected runs of at least 2 sizes or budgets with 2 pairs each, found ",
               groups.size());
  });
  Sizes sizes;
  std::vector<Mean> loss, change;
  for (const ComputePairs& group : groups) {
    check(group.baseline.size() >= 2, ErrorKind::setting,
          "a compute multiplier: expected at least 2 pairs at each size");
    std::vector<double> all = {group.baseline_compute, group.variant_compute}, logs, changes;
    for (const auto* losses : {&group.baseline, &group.variant}) all.insert(all.end(), losses->begin(), losses->end());
    check(std::ranges::min(all) > 0, ErrorKind::setting,
          "a compute multiplier is of positive computes and losses: found one that is not");
    for (size_t i = 0; i < group.baseline.size(); ++i) {
      logs.push_back(std::log(group.baseline[i]));
      changes.push_back(std::log(group.variant[i]) - logs.back());
    }
    loss.push_back(mean_of(logs)), change.push_back(mean_of(changes));
    sizes.x.push_back(std::log(group.baseline_compute / groups.front().baseline_compute));
    sizes.more_compute.push_back(std::log(group.variant_compute / group.baseline_compute));
    sizes.pairs.push_back(static_cast<double>(logs.size()));
  }
  const auto [small, large] = std::ranges::minmax_element(sizes.x);
  check(loss[static_cast<size_t>(large - sizes.x.begin())].value <
            loss[static_cast<size_t>(small - sizes.x.begin())].value,
        ErrorKind::setting, "a compute multiplier: the loss of the baseline does not fall with compute");

  const std::vector<double> middle = log_multipliers(sizes, values_of(loss), values_of(change));
  std::vector<std::vector<double>> drawn(middle.size());
  for (int64_t s = 0; s < samples; ++s) {
    const RandomKey of_sample = child(key, static_cast<uint64_t>(s));
    const std::vector<double> values =
        log_multipliers(sizes, drawn_of(loss, child(of_sample, "loss")), drawn_of(change, child(of_sample, "change")));
    for (size_t k = 0; k < values.size(); ++k) drawn[k].push_back(values[k]);
  }
  std::vector<Estimate> result;
  for (size_t k = 0; k < middle.size(); ++k) {
    std::ranges::sort(drawn[k]);
    const auto at = [&](double share) {
      return std::exp(drawn[k][static_cast<size_t>(share * static_cast<double>(samples - 1))]);
    };
    result.push_back({std::exp(middle[k]), at(0.025), at(0.975)});
  }
  return result;
}

}  // namespace braid::models
