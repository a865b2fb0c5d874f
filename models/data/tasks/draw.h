// Random choices of the generators of tasks.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "braid/models/data/tasks/tasks.h"

namespace braid::models::text {

// Numbers that depend only on where the sample stands in its series.
class Draw {
 public:
  Draw(Vocabulary vocabulary, uint64_t seed, int64_t index)
      : state_(mix(seed) ^ mix(static_cast<uint64_t>(index) * 2 + (vocabulary == Vocabulary::held_out) + 0x5EEDu)) {}
  size_t below(size_t n) { return static_cast<size_t>(mix(state_ += 0x9E3779B97F4A7C15u) % n); }
  template <class T>
  const T& one(const std::vector<T>& from) {
    return from[below(from.size())];
  }
  template <size_t K>
  std::array<size_t, K> distinct_below(size_t n) {
    std::array<size_t, K> picks{};
    for (size_t i = 0; i < K; ++i) do
        picks[i] = below(n);
      while (std::find(picks.begin(), picks.begin() + static_cast<ptrdiff_t>(i), picks[i]) !=
             picks.begin() + static_cast<ptrdiff_t>(i));
    return picks;
  }
  template <class T, size_t K>
  void shuffle(std::array<T, K>& items) {
    for (size_t i = K; i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }
  uint64_t state_;
};

}  // namespace braid::models::text
