// Products with weights in groups that have a scale each, for 32 rows of weights (a panel of tensor/group_weight.h) and
// the rows of x. I is an instruction set: its vector type; load; spread, a number in every lane; `pairs`, which adds
// two products of 16-bit integers to each 32-bit lane; `dot`, which adds four products of an unsigned and a signed
// byte, or two to each 16-bit lane (kShort). Each file that includes this one names its own, so that no two share a
// function.
//
// A lane of 32 bits is a row of weights. It sums the 32 products of a group, of which a vector adds four, as integers,
// then the groups in f32 in their order: every instruction set, and any number of rows of x, gives the same bits.
#pragma once
#include <cstddef>
#include <type_traits>

#include "braid/tensor/base/widen.h"
#include "braid/tensor/cpu/int8/variants.h"

namespace braid::cpu::int8 {

// x ~ unit scale values, the largest of a group kLargest. unit is a power of two near the largest of the row, so that
// scales neither overflow nor vanish beside each other.
template <class I, int Bits>
void round_row(const float* x, int64_t in, Group<Bits>* to, float* unit) {
  using To = Group<Bits>;
  const auto largest = [](const float* v, int64_t n) {  // of |v|, as bits: NaN is above infinity
    int32_t most = 0;
    for (int64_t i = 0; i < n; ++i) {
      const int32_t bits = __builtin_bit_cast(int32_t, v[i]) & 0x7fffffff;
      most = bits > most ? bits : most;
    }
    return most;
  };
  constexpr int32_t kInfinity = 0x7f800000, kExponent = 1 << 23;
  const int32_t of_row = largest(x, in) & kInfinity;
  if (of_row == kInfinity) {
    *unit = __builtin_nanf("");
    for (int64_t i = 0; i < in; i += kGroup) *to++ = {};
    return;
  }
  const int32_t power = of_row < kExponent ? kExponent : of_row > 253 * kExponent ? 253 * kExponent : of_row;
  const auto inverse = __builtin_bit_cast(float, 254 * kExponent - power);
  *unit = __builtin_bit_cast(float, power);
  for (int64_t i = 0; i < in; i += kGroup, ++to) {
    const float* v = x + i;
    float last[kGroup];  // of fewer: filled up with zeros
    if (in - i < kGroup) [[unlikely]] {
      for (int64_t k = 0; k < kGroup; ++k) last[k] = i + k < in ? v[k] : 0;
      v = last;
    }
    const float most = __builtin_bit_cast(float, largest(v, kGroup)) * inverse;
    const float steps = most > 0x1p-100f ? To::kLargest / most : 0;
    constexpr float magic = 12582912;  // adding it leaves the nearest integer in the low bits
    int32_t sum = 0;
    for (int64_t k = 0; k < kGroup; ++k) {
      const int32_t n = __builtin_bit_cast(int32_t, v[k] * inverse * steps + magic) - 0x4b400000;
      to->values[k] = static_cast<std::remove_reference_t<decltype(to->values[k])>>(n);
      sum += n;
    }
    to->scale = most / To::kLargest;
    to->start = -To::kZero * sum;
  }
}

// For T rows of x and the rows of weights in P vectors of a panel, from the `first` on.
template <class I, int Bits, int T, int P>
void multiply_block(const PanelProduct<Bits>& p, int64_t token, int64_t first) {
  using V = typename I::Vector;
  using Float = typename I::Float;
  using Word = typename detail::WordsOf<Float>::Word;
  using Int = typename detail::WordsOf<Float>::Int;
  constexpr int64_t kLanes = sizeof(V) / sizeof(float);
  constexpr bool kShort = Bits == 4 && I::kShort;
  constexpr uint32_t kMask = Bits == 4 ? 0x0f0f0f0f : 0x00ff00ff;
  const auto add = [](V sum, Word w, const Group<Bits>& x, int k) {  // w times the k-th 32 bits of x
    int32_t bits;
    __builtin_memcpy(&bits, reinterpret_cast<const char*>(x.values) + 4 * k, sizeof bits);
    if constexpr (Bits == 4)
      return I::dot(sum, reinterpret_cast<V>(w), I::spread(bits));
    else
      return I::pairs(sum, reinterpret_cast<V>(w), I::spread(bits));
  };
  const uint8_t* weights = p.weights + first * sizeof(V);
  const float16* scales = p.scales + first * kLanes;
  Float total[T][P] = {};
  for (int64_t g = 0; g < p.groups; ++g, weights += Bits * kPanelRows * 4, scales += kPanelRows) {
    const Group<Bits>* x[T];
    V sum[T][P];
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      x[t] = p.x + (token + t) * p.groups + g;
      for (int v = 0; v < P; ++v) sum[t][v] = I::spread(kShort ? 0 : x[t]->start);
    }
#pragma GCC unroll 8
    for (int j = 0; j < Bits; ++j) {
      Word even[P], odd[P];
#pragma GCC unroll 4
      for (int v = 0; v < P; ++v) {
        const auto w = reinterpret_cast<Word>(I::load(weights + j * kPanelRows * 4 + v * sizeof(V)));
        even[v] = w & kMask, odd[v] = w >> Bits & kMask;
      }
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t)
#pragma GCC unroll 4
        for (int v = 0; v < P; ++v) sum[t][v] = add(add(sum[t][v], even[v], *x[t], 2 * j), odd[v], *x[t], 2 * j + 1);
    }
#pragma GCC unroll 4
    for (int v = 0; v < P; ++v) {
      const auto scale = detail::widened_f16<Float>(scales + v * kLanes);
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
        V all = sum[t][v];
        if constexpr (kShort) all = I::pairs(I::spread(x[t]->start), all, I::spread(0x00010001));
        total[t][v] += scale * x[t]->scale * __builtin_convertvector(reinterpret_cast<Int>(all), Float);
      }
    }
  }
  for (int t = 0; t < T; ++t) {
    for (int v = 0; v < P; ++v) {
      const int64_t row = (first + v) * kLanes;
      Float y = total[t][v] * p.unit[token + t];
      if (p.bias) y += detail::bits_as<Float>(p.bias + row);
      __builtin_memcpy(p.y + (token + t) * p.stride + row, &y, sizeof y);
    }
  }
}

template <class I, int Bits, int T = I::kGroupTokens>
void multiply_panel(const PanelProduct<Bits>& p, int64_t token) {
  constexpr int kAtOnce = I::kGroupVectors;
  for (; token + T <= p.tokens; token += T)
    for (int64_t first = 0; first < kPanelRows * 4 / int64_t{sizeof(typename I::Vector)}; first += kAtOnce)
      multiply_block<I, Bits, T, kAtOnce>(p, token, first);
  if constexpr (T > 1) multiply_panel<I, Bits, T - 1>(p, token);
}

template <class I, int Bits>
inline constexpr GroupKernels<Bits> group_kernels{round_row<I, Bits>,
                                                  [](const PanelProduct<Bits>& p) { multiply_panel<I, Bits>(p, 0); }};

}  // namespace braid::cpu::int8
