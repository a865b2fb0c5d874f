// The keys that heads look at, as mean attention of a head to them:
//
//   previous   mean over i >= 1 of P[i, i-1]        the token before
//   self       mean over i of P[i, i]
//   first      mean over i >= 1 of P[i, 0]          the first token: where heads rest
//   and, on a text of K tokens that stands there twice (T = 2 K), over i >= K:
//   duplicate  mean of P[i, i-K]                    the same token before
//   induction  mean of P[i, i-K+1]                  the token after it, which comes next (Olsson and others, 2022)
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "braid/tensor/random.h"

namespace braid::models {

// map (N, T, T) -> (N)
std::vector<double> mean_at_offset(std::span<const double> map, int64_t heads, int64_t tokens, int64_t first_query,
                                   int64_t offset);  // P[i, i - offset] over i >= first_query
std::vector<double> mean_at_first(std::span<const double> map, int64_t heads, int64_t tokens);

inline std::vector<double> previous_token_score(std::span<const double> map, int64_t heads, int64_t tokens) {
  return mean_at_offset(map, heads, tokens, 1, 1);
}
inline std::vector<double> duplicate_score(std::span<const double> map, int64_t heads, int64_t tokens) {
  return mean_at_offset(map, heads, tokens, tokens / 2, tokens / 2);
}
inline std::vector<double> induction_score(std::span<const double> map, int64_t heads, int64_t tokens) {
  return mean_at_offset(map, heads, tokens, tokens / 2, tokens / 2 - 1);
}

// `length` tokens drawn from `pool` by the key, twice: a function of its arguments.
std::vector<int32_t> repeated_tokens(std::span<const int32_t> pool, int64_t length, RandomKey key);

}  // namespace braid::models
