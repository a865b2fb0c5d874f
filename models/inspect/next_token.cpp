#include "braid/models/inspect/next_token.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "braid/autograd/ops.h"
#include "braid/autograd/record.h"

namespace braid::models {

namespace {

// Logits (V) of a position -> log-probabilities (V).
std::vector<double> log_probabilities(std::vector<double> logits, int64_t position) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const double x : logits) sum += std::exp(x - largest);
  check(std::isfinite(largest) && std::isfinite(sum), ErrorKind::numerical, [&] {
    return str("the logits at position ", position,
               " give no distribution: expected finite values, found NaN or infinity; check the model's weights");
  });
  const double normalizer = largest + std::log(sum);
  for (double& x : logits) x -= normalizer;
  return logits;
}

double entropy(const std::vector<double>& log_p) {
  double sum = 0;
  for (const double x : log_p) sum -= std::isfinite(x) ? std::exp(x) * x : 0;
  return sum;
}

double divergence(const std::vector<double>& log_p, const std::vector<double>& log_q) {
  double sum = 0;
  for (size_t v = 0; v < log_p.size(); ++v)
    if (std::isfinite(log_p[v])) sum += std::exp(log_p[v]) * (log_p[v] - log_q[v]);
  return std::max(sum, 0.0);  // rounding may leave it a little below
}

std::vector<int32_t> most_likely(const std::vector<double>& log_p, int64_t count) {
  std::vector<int32_t> ids(log_p.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto more_likely = [&](int32_t a, int32_t b) {
    const double x = log_p[static_cast<size_t>(a)], y = log_p[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  const auto end = ids.begin() + std::min(count, std::ssize(ids));
  std::partial_sort(ids.begin(), end, ids.end(), more_likely);
  ids.erase(end, ids.end());
  return ids;
}

NextToken next_token(const std::vector<double>& plain, const std::vector<double>& scaled, std::optional<int32_t> next,
                     int64_t count) {
  const auto of = [&](const std::vector<double>& log_p) {
    NextToken::Distribution d{.entropy = entropy(log_p)};
    if (next) d.next = log_p[static_cast<size_t>(*next)];
    return d;
  };
  NextToken result{of(plain), of(scaled), divergence(plain, scaled), {}};
  std::vector<int32_t> ids = most_likely(plain, count);
  for (const int32_t id : most_likely(scaled, count))
    if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
  std::ranges::stable_sort(ids, [&](int32_t a, int32_t b) {
    const double x = plain[static_cast<size_t>(a)], y = plain[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  for (const int32_t id : ids)
    result.candidates.push_back({id, plain[static_cast<size_t>(id)], scaled[static_cast<size_t>(id)]});
  return result;
}

}  // namespace

std::vector<NextToken> next_tokens(const LanguageModel& model, std::span<const int32_t> tokens, const Tensor& plain,
                                   const Tensor& scaled, int64_t candidates) {
  const NoGrad off;
  const int64_t T = std::ssize(tokens), V = model.vocab_size();
  const int64_t rows = std::max<int64_t>(1, (1 << 20) / V);
  std::vector<NextToken> result;
  for (int64_t first = 0; first < T; first += rows) {
    const int64_t last = std::min(T, first + rows);
    const auto logits = [&](const Tensor& hidden) {
      return model.logits(contiguous(hidden.sliced(1, first, last))).to(kCpu).to_vector<double>();  // (rows, V)
    };
    const std::vector<double> a = logits(plain), b = plain.id() == scaled.id() ? a : logits(scaled);
    for (int64_t t = first; t < last; ++t) {
      const auto row = [&](const std::vector<double>& all) {
        return log_probabilities({all.begin() + (t - first) * V, all.begin() + (t - first + 1) * V}, t);
      };
      const std::optional<int32_t> next = t + 1 < T ? std::optional(tokens[static_cast<size_t>(t + 1)]) : std::nullopt;
      result.push_back(next_token(row(a), row(b), next, candidates));
    }
  }
  return result;
}

}  // namespace braid::models
