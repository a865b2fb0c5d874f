// Sums of products with weights in groups that have a scale each. I is an instruction set: its vector type, load,
// `nibbles`, the 4-bit weights of one part of a chunk, and `pairs`, which adds two products of 16-bit integers to each
// 32-bit lane. Each file that includes this one names its own, so that no two share a function; what is no function of
// I is inlined.
//
// A chunk of 64 products has 16 lanes of four, summed as integers, which is exact. A lane over all chunks is a sum of
// f32 in their order, scale times integer, rounded after each operation; the lanes are added as a tree at the end. So
// every instruction set gives the same bits.
#pragma once
#include <cstddef>
#include <utility>

#include "braid/tensor/cpu/int8/blocks.h"
#include "braid/tensor/cpu/int8/variants.h"

namespace braid::cpu::int8 {

alignas(64) inline constexpr int32_t kSecondGroup[16] = {0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1};

template <int64_t Bytes>
struct LanesOf {
  typedef int32_t Int __attribute__((vector_size(Bytes)));
  typedef float Float __attribute__((vector_size(Bytes)));
  typedef uint16_t Words __attribute__((vector_size(Bytes)));
};

// Lanes N apart of a and of b, added: those of a become the lower half.
template <int N, class Float, size_t... L>
[[gnu::always_inline]] inline Float add_halves(Float a, Float b, std::index_sequence<L...>) {
  constexpr int W = sizeof...(L);
  const auto from = [](int lane, int second) {  // of a, or W + the lane of b
    const int of_b = lane >= W / 2, at = lane % (W / 2);
    return of_b * W + at / N * 2 * N + at % N + second * N;
  };
  return __builtin_shufflevector(a, b, from(L, 0)...) + __builtin_shufflevector(a, b, from(L, 1)...);
}

// Lane i of the result: all lanes of v[i], added as a tree: lanes W / 2 apart, then W / 4 and so on.
template <class Float, int W, int N = W / 2>
[[gnu::always_inline]] inline Float lane_sums(Float (&v)[W]) {
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) v[i] = add_halves<N>(v[2 * i], v[2 * i + 1], std::make_index_sequence<W>());
  if constexpr (N > 1) return lane_sums<Float, W, N / 2>(v);
  return v[0];
}

// The same for one vector, in lane 0.
template <int N = 0, class Float>
[[gnu::always_inline]] inline Float lane_sum(Float v) {
  constexpr int W = sizeof(Float) / sizeof(float), n = N ? N : W / 2;
  v = add_halves<n>(v, v, std::make_index_sequence<W>());
  if constexpr (n > 1) return lane_sum<n / 2>(v);
  return v;
}

template <class I, int Bits, int R, int T>
void group_block(const GroupSums& p, int64_t row, int64_t token) {
  using V = typename I::Vector;
  constexpr int64_t kWidth = sizeof(V), kParts = 64 / kWidth, kBytes = 8 * Bits;  // of the weights of a chunk
  constexpr uint16_t kZero = Bits == 4 ? 8 : 128;                                 // the byte of a weight 0
  using Int = typename LanesOf<kWidth>::Int;
  using Float = typename LanesOf<kWidth>::Float;
  using Words = typename LanesOf<kWidth>::Words;
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
      Words even[R], odd[R];
      Float scale[R];
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const uint8_t* at = weights + (r * p.chunks + c) * kBytes;
        const float* s = scales + (r * p.chunks + c) * 2;
        Words w;
        if constexpr (Bits == 4)
          w = reinterpret_cast<Words>(I::nibbles(at, part));
        else
          w = reinterpret_cast<Words>(I::load(at + part * kWidth));
        even[r] = (w & 0xff) - kZero, odd[r] = (w >> 8) - kZero;
        if constexpr (kParts == 1) {
          Int second;
          __builtin_memcpy(&second, kSecondGroup, sizeof second);
          scale[r] = second ? Float{} + s[1] : Float{} + s[0];
        } else {
          scale[r] = Float{} + s[2 * part / kParts];
        }
      }
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
        const Chunk& chunk = x[t * p.chunks + c];
        const V x_even = I::load(chunk.values[0] + part * kWidth / 2),
                x_odd = I::load(chunk.values[1] + part * kWidth / 2);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
          const V sum =
              I::pairs(I::pairs(I::zero(), reinterpret_cast<V>(even[r]), x_even), reinterpret_cast<V>(odd[r]), x_odd);
          total[t][r][part] += scale[r] * __builtin_convertvector(reinterpret_cast<Int>(sum), Float);
        }
      }
    }
  }
  constexpr int W = kWidth / sizeof(float);
  static_assert(T * R <= W);
  Float v[W] = {};
#pragma GCC unroll 16
  for (int i = 0; i < T * R; ++i) {
    Float* parts = total[i / R][i % R];
    for (int64_t n = kParts / 2; n > 0; n /= 2)
      for (int64_t part = 0; part < n; ++part) parts[part] += parts[part + n];
    v[i] = parts[0];
  }
  float sums[W];
  const Float all = T * R == 1 ? lane_sum(v[0]) : lane_sums(v);
  __builtin_memcpy(sums, &all, sizeof sums);
  for (int t = 0; t < T; ++t)
    for (int r = 0; r < R; ++r) p.sums[(token + t) * p.rows + row + r] = sums[t * R + r];
}

template <class I, int Bits>
void run_groups(const GroupSums& p) {
  each_block<I::kGroupRows, I::kGroupTokens>(p.rows, p.tokens, 3, [&]<int R, int T>(int64_t row, int64_t token) {
    group_block<I, Bits, R, T>(p, row, token);
  });
}

}  // namespace braid::cpu::int8
