// Sums of products in plain loops, which the compiler vectorises for the instruction set of the file that includes
// this one. BRAID_INT8_ISA is the namespace of all that follows: two instruction sets must not share an inline
// function.
#pragma once
#include "braid/tensor/cpu/int8/variants.h"

namespace braid::cpu::int8::BRAID_INT8_ISA {

inline constexpr int64_t kBlock = 256;  // 256 products of 255 and kLargest fit 32 bits
static_assert(kBlock * 255 * kLargest <= INT32_MAX);

inline int32_t dot(const int16_t* a, const int16_t* b, int64_t n) {
  int32_t sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += int32_t{a[i]} * int32_t{b[i]};
  return sum;
}

inline void run(const Sums& p) {
  int16_t wide[kBlock];
  for (int64_t i = 0; i < p.tokens * p.rows; ++i) p.sums[i] = 0;
  for (int64_t r = 0; r < p.rows; ++r) {
    const uint8_t* weights = p.weights + r * p.in;
    for (int64_t first = 0; first < p.in; first += kBlock) {
      const bool whole = p.in - first >= kBlock;
      const int64_t n = whole ? kBlock : p.in - first;
      for (int64_t i = 0; i < n; ++i) wide[i] = weights[first + i];
      for (int64_t t = 0; t < p.tokens; ++t) {
        const int16_t* x = p.x + t * p.padded + first;
        p.sums[t * p.rows + r] += whole ? dot(wide, x, kBlock) : dot(wide, x, n);
      }
    }
  }
}

}  // namespace braid::cpu::int8::BRAID_INT8_ISA
