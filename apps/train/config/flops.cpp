#include "apps/train/config/flops.h"

#include <algorithm>
#include <map>

#include "apps/train/config/trained.h"

namespace braid::apps {

double forward_flops(const models::ModelSpec& model, const models::text::Dataset& data) {
  constexpr int64_t kSamples = 32;
  const int64_t n = std::min(kSamples, data.size());
  std::map<int64_t, double> of_length;
  double total = 0;
  for (int64_t i = 0; i < n; ++i) {
    const models::text::Sequence sample = data.sequence(i * data.size() / n);
    const auto add = [&](int64_t length) {
      const auto [at, first] = of_length.try_emplace(length, 0);
      if (first) at->second = model.forward_flops(length);
      total += at->second;
    };
    int64_t length = 0;
    for (const int32_t position : sample.positions) {
      if (position == 0 && length > 0) add(std::exchange(length, 0));
      ++length;
    }
    add(sample.positions.empty() ? data.seq_len() : length);
  }
  return n > 0 ? total / static_cast<double>(n) : model.forward_flops(data.seq_len());
}

SampleFlops sample_flops(const TrainConfig& config, const models::ModelSpec& model, int64_t seq_len, double forward,
                         int64_t updates) {
  if (forward == 0) forward = model.forward_flops(seq_len);
  const WeightElements weights = weight_elements(config, model, updates);
  const auto T = static_cast<double>(seq_len);
  SampleFlops flops;
  flops.forward = forward + 2 * T * static_cast<double>(weights.lora);
  flops.backward = 2 * flops.forward - 2 * T * static_cast<double>(weights.frozen);
  return flops;
}

}  // namespace braid::apps
