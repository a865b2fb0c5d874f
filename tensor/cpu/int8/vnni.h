// Sums of products with VNNI, whose instruction adds four products of an unsigned and a signed byte to each 32-bit
// lane. I is an instruction set: its vector type, load, dot and sum of lanes. Each file that includes this one names
// its own, so that no two share a function.
#pragma once
#include "braid/tensor/cpu/int8/blocks.h"
#include "braid/tensor/cpu/int8/variants.h"

namespace braid::cpu::int8 {

// A block of R rows of weights and T rows of x, whose sums stay in registers: a weight is read once for both of its
// products, with the upper and with the lower bytes of x.
template <class I, int R, int T>
void block(const Sums& p, int64_t row, int64_t token) {
  using V = typename I::Vector;
  constexpr int64_t W = sizeof(V), kBlock = 65536;  // 65536 products of 255 and -128 fit 32 bits
  const uint8_t* weights = p.weights + row * p.in;
  const char* x = reinterpret_cast<const char*>(p.x + token * p.padded);
  int64_t total[T][R] = {};
  for (int64_t first = 0; first < p.in; first += kBlock) {
    const int64_t end = p.in - first < kBlock ? p.in : first + kBlock;
    V high[T][R], low[T][R];
    for (int t = 0; t < T; ++t)
      for (int r = 0; r < R; ++r) high[t][r] = low[t][r] = I::zero();
    for (int64_t i = first; i < end; i += W) {
      V w[R];
      if (end - i >= W) [[likely]] {
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) w[r] = I::load(weights + r * p.in + i);
      } else {
        for (int r = 0; r < R; ++r) {  // past the end x is 0
          char last[W] = {};
          __builtin_memcpy(last, weights + r * p.in + i, static_cast<size_t>(end - i));
          w[r] = I::load(last);
        }
      }
#pragma GCC unroll 4
      for (int t = 0; t < T; ++t) {
        const char* bytes = x + 2 * t * p.padded + i;
        const V upper = I::load(bytes), lower = I::load(bytes + p.padded);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
          high[t][r] = I::dot(high[t][r], w[r], upper);
          low[t][r] = I::dot(low[t][r], w[r], lower);
        }
      }
    }
    for (int t = 0; t < T; ++t)
      for (int r = 0; r < R; ++r) total[t][r] += 256 * int64_t{I::sum(high[t][r])} + I::sum(low[t][r]);
  }
  for (int t = 0; t < T; ++t)
    for (int r = 0; r < R; ++r) p.sums[(token + t) * p.rows + row + r] = total[t][r];
}

template <class I>
void run_vnni(const Sums& p) {
  each_block<4, I::kTokens>(p.rows, p.tokens, I::kTokens,
                            [&]<int R, int T>(int64_t row, int64_t token) { block<I, R, T>(p, row, token); });
}

}  // namespace braid::cpu::int8
