#include "braid/models/inspect/token_losses.h"

#include <algorithm>
#include <cmath>

#include "braid/autograd/ops.h"
#include "braid/autograd/record.h"

namespace braid::models {

Tensor token_ids(const LanguageModel& model, std::span<const int32_t> tokens) {
  return from_vector(std::vector<int32_t>(tokens.begin(), tokens.end()), {1, std::ssize(tokens)}).to(model.device());
}

std::vector<double> token_losses(const LanguageModel& model, const Tensor& hidden, std::span<const int32_t> tokens) {
  const NoGrad off;
  const int64_t T = std::ssize(tokens), V = model.vocab_size(), rows = std::max<int64_t>(1, (1 << 20) / V);
  std::vector<double> losses;
  for (int64_t first = 0; first + 1 < T; first += rows) {
    const int64_t last = std::min(T - 1, first + rows);
    const std::vector<double> logits =
        model.logits(contiguous(hidden.sliced(1, first, last))).to(kCpu).to_vector<double>();
    for (int64_t t = first; t < last; ++t) {
      const std::span<const double> row(logits.data() + (t - first) * V, static_cast<size_t>(V));
      const double largest = *std::ranges::max_element(row);
      double sum = 0;
      for (const double x : row) sum += std::exp(x - largest);
      check(std::isfinite(largest) && std::isfinite(sum), ErrorKind::numerical, [&] {
        return str("the logits at position ", t,
                   " give no distribution: expected finite values, found NaN or infinity; check the model's weights");
      });
      losses.push_back(largest + std::log(sum) - row[static_cast<size_t>(tokens[static_cast<size_t>(t) + 1])]);
    }
  }
  return losses;
}

MeanAndError mean_and_error(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  if (values.empty()) return {};
  double sum = 0, squares = 0;
  for (const double x : values) sum += x;
  const double mean = sum / n;
  for (const double x : values) squares += (x - mean) * (x - mean);
  return {mean, values.size() < 2 ? 0 : std::sqrt(squares / (n - 1) / n)};
}

}  // namespace braid::models
