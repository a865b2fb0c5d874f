#include "braid/models/data/sampler.h"

#include <bit>
#include <string>

#include "braid/tensor/error.h"

namespace braid::models::text {
namespace {

// The finaliser of SplitMix64: every bit of the input moves every bit of the output.
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

// A Feistel network on two halves of h bits is a bijection of [0, 4^h) whatever its round function:
//   (l, r) -> (r, l ^ F(round, r)).
// 4^h is the smallest such size >= n. A result >= n is fed in again ("cycle walking"): this follows the cycle of x
// until it re-enters [0, n), which keeps the bijection and takes fewer than 4 steps on average, since 4^h < 4n.
int64_t permuted_index(int64_t n, uint64_t key, int64_t x) {
  check(n >= 1 && x >= 0 && x < n, "permuted_index", [&] { return str("index ", x, " is outside of [0, ", n, ")"); });
  const int half = (std::bit_width(static_cast<uint64_t>(n - 1)) + 1) / 2;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  auto value = static_cast<uint64_t>(x);
  do {
    uint64_t left = value >> half, right = value & mask;
    for (uint64_t round = 0; round < 8; ++round) {
      const uint64_t next = left ^ (mix(key ^ mix(right + (round << 48))) & mask);
      left = right;
      right = next;
    }
    value = left << half | right;
  } while (value >= static_cast<uint64_t>(n));
  return static_cast<int64_t>(value);
}

Sampler::Sampler(int64_t size, uint64_t seed) : size_(size), seed_(seed) {
  check(size >= 1, "sampler", [&] { return str("needs at least one sample, got ", size); });
}

int64_t Sampler::index(int64_t epoch, int64_t position) const {
  check(epoch >= 0, "sampler", [&] { return str("epoch must not be negative, got ", epoch); });
  return permuted_index(size_, mix(seed_ + mix(static_cast<uint64_t>(epoch))), position);
}

}  // namespace braid::models::text
