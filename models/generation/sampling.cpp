#include "braid/models/generation/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "braid/tensor/error.h"
#include "braid/tensor/random.h"

namespace braid::models {

void check_options(const SamplingOptions& o) {
  auto range = [](bool ok, const char* name, double value, const char* allowed) {
    check(ok, ErrorKind::setting, [&] {
      return std::string("sampling option ") + name + " is out of range: expected " + allowed + ", found " +
             std::to_string(value);
    });
  };
  range(o.temperature >= 0 && std::isfinite(o.temperature), "temperature", o.temperature, "0 or more");
  range(o.top_k >= 0, "top-k", static_cast<double>(o.top_k), "0 (all) or more");
  range(o.top_p > 0 && o.top_p <= 1, "top-p", o.top_p, "a value in (0, 1]");
  range(o.min_p >= 0 && o.min_p <= 1, "min-p", o.min_p, "a value in [0, 1]");
  range(o.repetition_penalty > 0 && std::isfinite(o.repetition_penalty), "repetition-penalty", o.repetition_penalty,
        "a positive value");
}

void check_logits(std::span<const float> logits, size_t position) {
  float top = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < logits.size(); ++i) {
    check(!std::isnan(logits[i]) && logits[i] <= std::numeric_limits<float>::max(), ErrorKind::numerical, [&] {
      const auto bad = std::count_if(logits.begin(), logits.end(), [](float l) { return !std::isfinite(l); });
      return "no token can be drawn for position " + std::to_string(position) + ": the logit of token id " +
             std::to_string(i) + " is " + (std::isnan(logits[i]) ? "NaN" : "infinite") + ", " + std::to_string(bad) +
             " of " + std::to_string(logits.size()) +
             " are not finite; compute in a wider type (f32, f64), or use an earlier checkpoint";
    });
    top = std::max(top, logits[i]);
  }
  check(std::isfinite(top), ErrorKind::numerical, [&] {
    return "no token can be drawn for position " + std::to_string(position) + ": all " + std::to_string(logits.size()) +
           " logits are -inf; compute in a wider type (f32, f64), or use an earlier checkpoint";
  });
}

int64_t sample_token(std::vector<float> logits, std::span<const int32_t> seen, const SamplingOptions& o) {
  check(!logits.empty(), "sample_token", [] { return std::string("needs at least one logit"); });
  if (o.vocabulary > 0 && o.vocabulary < std::ssize(logits)) logits.resize(static_cast<size_t>(o.vocabulary));
  check_logits(logits, seen.size());
  if (o.repetition_penalty != 1) {
    constexpr double most = std::numeric_limits<float>::max();
    std::vector<char> penalised(logits.size(), 0);
    for (int32_t t : seen) {
      if (t < 0 || static_cast<size_t>(t) >= logits.size() || penalised[static_cast<size_t>(t)]) continue;
      float& l = logits[static_cast<size_t>(t)];
      const double changed = l > 0 ? l / o.repetition_penalty : l * o.repetition_penalty;
      if (std::isfinite(l)) l = static_cast<float>(std::clamp(changed, -most, most));
      penalised[static_cast<size_t>(t)] = 1;
    }
  }
  if (o.temperature == 0) return std::max_element(logits.begin(), logits.end()) - logits.begin();

  // Candidates from the most to the least likely; equal logits in order of their ids.
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  if (o.top_k > 0 && o.top_k < static_cast<int64_t>(order.size())) order.resize(static_cast<size_t>(o.top_k));

  std::vector<double> probability;
  double top = logits[static_cast<size_t>(order[0])], total = 0;
  for (int64_t id : order) {
    probability.push_back(std::exp((logits[static_cast<size_t>(id)] - top) / o.temperature));
    total += probability.back();
  }
  size_t keep = probability.size();
  if (o.top_p < 1) {
    double mass = 0;
    for (keep = 0; keep < probability.size() && mass < o.top_p * total; ++keep) mass += probability[keep];
  }
  while (keep > 1 && probability[keep - 1] < o.min_p * probability[0]) --keep;

  double mass = std::accumulate(probability.begin(), probability.begin() + static_cast<std::ptrdiff_t>(keep), 0.0);
  double u = unit(random_bits(seen.size(), child({o.seed, 0}, "sample"))) * mass;
  for (size_t i = 0; i < keep; ++i) {
    u -= probability[i];
    if (u < 0) return order[i];
  }
  return order[keep - 1];
}

}  // namespace braid::models
