// philox() of consecutive counters side by side: each round is a vector loop.
#pragma once
#include "braid/tensor/random.h"

namespace braid {

// word[w][b] = word w of philox(first + b, key), b < count <= Size.
template <int64_t Size>
struct RandomBlocks {
  uint32_t word[4][Size];

  [[gnu::always_inline]] inline void draw(uint64_t first, int64_t count, RandomKey key) {
    for (int64_t b = 0; b < count; ++b) {
      const uint64_t counter = first + static_cast<uint64_t>(b);
      word[0][b] = static_cast<uint32_t>(counter);
      word[1][b] = static_cast<uint32_t>(counter >> 32);
      word[2][b] = static_cast<uint32_t>(key.stream);
      word[3][b] = static_cast<uint32_t>(key.stream >> 32);
    }
    for (PhiloxKey round(key); round.rounds > 0; round.next()) {
      for (int64_t b = 0; b < count; ++b) {
        const Philox4 next = philox_round({{word[0][b], word[1][b], word[2][b], word[3][b]}}, round);
        for (int w = 0; w < 4; ++w) word[w][b] = next.v[w];
      }
    }
  }
};

}  // namespace braid
