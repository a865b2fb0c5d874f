// Random numbers of one stream, one after another.
#pragma once
#include <cstdint>

#include "braid/tensor/random.h"

namespace braid::models {

class RandomStream {
 public:
  explicit RandomStream(RandomKey key) : key_(key) {}
  // Uniform in (0, 1), and in (low, high).
  double unit() { return braid::unit(bits()); }
  double between(double low, double high) { return low + (high - low) * unit(); }
  // Integers 0 ... n-1: from unit(), of which there are 2^23, or from all 32 bits.
  int64_t below_by_unit(int64_t n) { return static_cast<int64_t>(unit() * static_cast<double>(n)); }
  int64_t below_by_remainder(int64_t n) { return bits() % static_cast<uint32_t>(n); }

 private:
  uint32_t bits() { return random_bits(next_++, key_); }

  RandomKey key_;
  uint64_t next_ = 0;
};

}  // namespace braid::models
