// Sums and maxima over a row, written so that the compiler vectorises them without -ffast-math: explicit lanes and a
// fixed order of summation.
#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>

namespace braid::cpu {

// 32 running results: with fewer, g++ unrolls the inner loop before it recognises a vector loop.
inline constexpr int kLanes = 32;

// acc[l] += acc[l + Width] for every Width from the given one down to 1. Lengths known here become vector instructions.
template <int Width, class A>
[[gnu::always_inline]] inline void fold_halves(A* acc) {
#pragma GCC unroll 1  // otherwise g++ unrolls first and then often finds nothing to vectorise
  for (int l = 0; l < Width; ++l) acc[l] += acc[l + Width];
  if constexpr (Width > 1) fold_halves<Width / 2>(acc);
}

// Sum of f(i) for i in [0, n): running sums side by side, then a fixed tree.
template <class A, class F>
inline A lane_sum(int64_t n, F f) {
  if (n <= kLanes / 2) {  // the same sums without the lanes that would be 0
    A acc[kLanes / 2];
#pragma GCC unroll 1
    for (int l = 0; l < kLanes / 2; ++l) acc[l] = l < n ? A(0) + f(l) : A(0);
    fold_halves<kLanes / 4>(acc);
    return acc[0];
  }
  A acc[kLanes];
  // The first kLanes are stored, not added to an array of zeros, which g++ clears with a slow string instruction.
#pragma GCC unroll 1
  for (int l = 0; l < kLanes; ++l) acc[l] = n < kLanes ? A(0) : A(0) + f(l);
  int64_t i = n < kLanes ? 0 : kLanes;
  for (; i + kLanes <= n; i += kLanes) {
#pragma GCC unroll 1
    for (int l = 0; l < kLanes; ++l) acc[l] += f(i + l);
  }
  const int64_t rest = n - i;
#if defined(__AVX2__)  // loads under a mask; a sum of 0 and others is never -0, so adding 0 changes nothing
  if (rest > 0) {
#pragma GCC unroll 1
    for (int l = 0; l < kLanes; ++l) acc[l] += l < rest ? f(i + l) : A(0);
  }
#else
  for (int64_t l = 0; l < rest; ++l) acc[l] += f(i + l);
#endif
  fold_halves<kLanes / 2>(acc);
  return acc[0];
}

// The same of maxima and of flags.
template <int Width, class A, class Flag>
[[gnu::always_inline]] inline void fold_extremes(A* acc, Flag* nan) {
#pragma GCC unroll 1
  for (int l = 0; l < Width; ++l) {
    acc[l] = acc[l + Width] > acc[l] ? acc[l + Width] : acc[l];
    nan[l] |= nan[l + Width];
  }
  if constexpr (Width > 1) fold_extremes<Width / 2>(acc, nan);
}

// Largest f(i), -inf when n = 0. NaN wins; NaNs are counted separately, because a comparison with NaN is always false.
template <class A, class F>
inline A lane_max(int64_t n, F f) {
  using Flag = std::conditional_t<sizeof(A) == 8, int64_t, int32_t>;
  A acc[kLanes];
  Flag nan[kLanes] = {};
  for (int l = 0; l < kLanes; ++l) acc[l] = -std::numeric_limits<A>::infinity();
  auto take = [&](int64_t l, A v) {
    acc[l] = v > acc[l] ? v : acc[l];
    nan[l] |= v != v ? -1 : 0;
  };
  const auto take_lanes = [&](int64_t i) {
#pragma GCC unroll 1  // as in lane_sum
    for (int l = 0; l < kLanes; ++l) take(l, f(i + l));
  };
  for (int64_t i = 0; i + kLanes <= n; i += kLanes) take_lanes(i);
  if (n >= kLanes) {
    if (n % kLanes > 0) take_lanes(n - kLanes);  // some for the second time
  } else {
    for (int64_t l = 0; l < n; ++l) take(l, f(l));
  }
  fold_extremes<kLanes / 2>(acc, nan);
  return nan[0] != 0 ? std::numeric_limits<A>::quiet_NaN() : acc[0];
}

}  // namespace braid::cpu
