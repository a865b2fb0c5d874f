#include <algorithm>

#include "braid/tensor/kernels/attention.h"

namespace braid {

std::vector<QueryBlock> split_queries(int64_t B, int64_t T, int64_t S, const AttentionMask& mask, int64_t samples,
                                      int64_t rows) {
  std::vector<QueryBlock> blocks;
  for (int64_t b0 = 0; b0 < B; b0 += samples) {
    for (int64_t t0 = 0; t0 < T; t0 += rows) {
      const int64_t t1 = std::min(T, t0 + rows), s1 = mask.end(t1 - 1, S), s0 = std::min(mask.first(t0), s1);
      blocks.push_back({b0, std::min(samples, B - b0), t0, t1 - t0, s0, s1 - s0});
    }
  }
  return blocks;
}

}  // namespace braid
