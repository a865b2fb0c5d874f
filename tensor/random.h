// Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011): element i of stream (seed, key) is a pure function
// of its position, so the values are the same on every device and at any thread count, and nothing has to be saved to
// resume.
#pragma once
#include <cmath>
#include <concepts>
#include <cstdint>

#include "braid/tensor/device_code.h"
#include "braid/tensor/dtype.h"

namespace braid {

// Names one stream of random numbers: the seed of the run and the purpose (parameter, step, layer, ...).
struct RandomKey {
  uint64_t seed = 0;
  uint64_t stream = 0;
};

// A stream derived from a key: child(child(key, 3), 7) is independent of child(child(key, 7), 3).
RandomKey child(RandomKey key, uint64_t index);
RandomKey child(RandomKey key, const char* name);
template <std::integral Index>
RandomKey child(RandomKey key, Index index) {
  return child(key, static_cast<uint64_t>(index));
}

struct Philox4 {
  uint32_t v[4];
};

// The words that a round mixes in, round by round.
struct PhiloxKey {
  int rounds = 10;  // left
  uint32_t first, second;
  BRAID_HD explicit PhiloxKey(RandomKey key)
      : first(static_cast<uint32_t>(key.seed)), second(static_cast<uint32_t>(key.seed >> 32)) {}
  BRAID_HD void next() {
    --rounds;
    first += 0x9E3779B9u;
    second += 0xBB67AE85u;
  }
};
BRAID_HD Philox4 philox_round(const Philox4& c, const PhiloxKey& key) {
  const uint64_t p0 = uint64_t{0xD2511F53u} * c.v[0], p1 = uint64_t{0xCD9E8D57u} * c.v[2];
  return {{static_cast<uint32_t>(p1 >> 32) ^ c.v[1] ^ key.first, static_cast<uint32_t>(p1),
           static_cast<uint32_t>(p0 >> 32) ^ c.v[3] ^ key.second, static_cast<uint32_t>(p0)}};
}
BRAID_HD Philox4 philox(uint64_t counter, RandomKey key) {
  Philox4 c{{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), static_cast<uint32_t>(key.stream),
             static_cast<uint32_t>(key.stream >> 32)}};
  for (PhiloxKey words(key); words.rounds > 0; words.next()) c = philox_round(c, words);
  return c;
}

// 32 random bits of element i: block i/4, word i%4.
BRAID_HD uint32_t random_bits(uint64_t i, RandomKey key) { return philox(i / 4, key).v[i % 4]; }

// In (0, 1): the middle of one of 2^23 equal cells (exact in f32, never 0 or 1).
BRAID_HD float unit(uint32_t bits) { return (static_cast<float>(bits >> 9) + 0.5f) * 0x1p-23f; }

// The formulas of the random kernels, with explicit fused multiply-adds, so that every device has them in the same
// places.
// Draws from low to below high, in the arithmetic type A. first and last are the extreme values there that the type of
// the result has: the sum, or its rounding to 16 bits, could lie outside.
template <class A>
struct UniformRange {
  A low, width, first, last;
  template <class B>
  UniformRange<B> as() const {
    return {B(low), B(width), B(first), B(last)};
  }
};
UniformRange<double> uniform_range(DType result, double low, double high);
template <class A>
BRAID_HD A uniform_number(float u, const UniformRange<A>& range) {
  const A x = std::fma(A(u), range.width, range.low);
  return x > range.last ? range.last : x < range.first ? range.first : x;
}

}  // namespace braid
