// Sums of products with weights in groups that have a scale each. I is an instruction set: its vector type, load, dot
// of bytes, and `nibbles`, the 4-bit weights of one part of a chunk. Each file that includes this one names its own, so
// that no two share a function.
//
// A chunk of 64 products has 16 lanes of four, summed as integers, which is exact. A lane over all chunks is a sum of
// f32 in their order, scale times integer, rounded after each operation; the lanes are added as a tree at the end. So
// every instruction set gives the same bits.
#pragma once
#include "braid/tensor/cpu/int8/blocks.h"
#include "braid/tensor/cpu/int8/variants.h"

namespace braid::cpu::int8 {

alignas(64) inline constexpr int32_t kSecondGroup[16] = {0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1};

template <int64_t Bytes>
struct LanesOf {
  typedef int32_t Int __attribute__((vector_size(Bytes)));
  typedef float Float __attribute__((vector_size(Bytes)));
};

template <class I, int Bits, int R, int T>
void group_block(const GroupSums& p, int64_t row, int64_t token) {
  using V = typename I::Vector;
  constexpr int64_t kWidth = sizeof(V), kParts = 64 / kWidth, kBytes = 8 * Bits;  // of the weights of a chunk
  using Int = typename LanesOf<kWidth>::Int;
  using Float = typename LanesOf<kWidth>::Float;
  const uint8_t* weights = p.weights + row * p.chunks * kBytes;
  const float* scales = p.scales + row * p.chunks * 2;
  const Chunk* x = p.x + token * p.chunks;
  Float total[T][R][kParts];
  for (int t = 0; t < T; ++t)
    for (int r = 0; r < R; ++r)
      for (int part = 0; part < kParts; ++part) total[t][r][part] = Float{};
  for (int64_t c = 0; c < p.chunks; ++c) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) {
      V w[R];
      Float scale[R];
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const uint8_t* at = weights + (r * p.chunks + c) * kBytes;
        const float* s = scales + (r * p.chunks + c) * 2;
        if constexpr (Bits == 4)
          w[r] = I::nibbles(at, part);
        else
          w[r] = I::load(at + part * kWidth);
        if constexpr (kParts == 1) {
          Int second;
          __builtin_memcpy(&second, kSecondGroup, sizeof second);
          scale[r] = second ? Float{} + s[1] : Float{} + s[0];
        } else {
          scale[r] = Float{} + s[2 * part / kParts];
        }
      }
#pragma GCC unroll 4
      for (int t = 0; t < T; ++t) {
        const Chunk& chunk = x[t * p.chunks + c];
        const V high = I::load(chunk.high + part * kWidth), low = I::load(chunk.low + part * kWidth);
        Int offset;
        __builtin_memcpy(&offset, chunk.offset + part * kWidth / 4, sizeof offset);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
          const Int upper = reinterpret_cast<Int>(I::template dot<Bits>(I::zero(), w[r], high)) << 8;
          const Int sum = reinterpret_cast<Int>(I::template dot<Bits>(reinterpret_cast<V>(upper + offset), w[r], low));
          total[t][r][part] += scale[r] * __builtin_convertvector(sum, Float);
        }
      }
    }
  }
  for (int t = 0; t < T; ++t)
    for (int r = 0; r < R; ++r) {
      float lanes[16];
      __builtin_memcpy(lanes, total[t][r], sizeof lanes);
      for (int n = 8; n > 0; n /= 2)
        for (int l = 0; l < n; ++l) lanes[l] += lanes[l + n];
      p.sums[(token + t) * p.rows + row + r] = lanes[0];
    }
}

template <class I, int Bits>
void run_groups(const GroupSums& p) {
  each_block<I>(p.rows, p.tokens,
                [&]<int R, int T>(int64_t row, int64_t token) { group_block<I, Bits, R, T>(p, row, token); });
}

}  // namespace braid::cpu::int8
