#include "braid/models/inspect/head_patterns.h"

namespace braid::models {

std::vector<double> mean_at_offset(std::span<const double> map, int64_t heads, int64_t tokens, int64_t first_query,
                                   int64_t offset) {
  std::vector<double> result(static_cast<size_t>(heads));
  if (first_query >= tokens) return result;
  for (int64_t n = 0; n < heads; ++n) {
    double sum = 0;
    for (int64_t i = first_query; i < tokens; ++i)
      sum += map[static_cast<size_t>((n * tokens + i) * tokens + i - offset)];
    result[static_cast<size_t>(n)] = sum / static_cast<double>(tokens - first_query);
  }
  return result;
}

std::vector<double> mean_at_first(std::span<const double> map, int64_t heads, int64_t tokens) {
  std::vector<double> result(static_cast<size_t>(heads));
  for (int64_t n = 0; n < heads; ++n)
    for (int64_t i = 1; i < tokens; ++i)
      result[static_cast<size_t>(n)] +=
          map[static_cast<size_t>((n * tokens + i) * tokens)] / static_cast<double>(tokens - 1);
  return result;
}

std::vector<int32_t> repeated_tokens(std::span<const int32_t> pool, int64_t length, RandomKey key) {
  std::vector<int32_t> tokens(static_cast<size_t>(2 * length));
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = pool[random_bits(i % static_cast<uint64_t>(length), key) % pool.size()];
  return tokens;
}

}  // namespace braid::models
