// Pairs (e, e + h) of the first 2h channels of a row, rotated by an angle a(e); the rest is copied.
//   y[e] = x[e] cos a - x[e+h] sin a,   y[e+h] = x[e+h] cos a + x[e] sin a
// With sign = -1 by -a, which is the inverse and the derivative.
#pragma once
#include <cstdint>
#include <cstring>

#include "braid/tensor/cpu/ivdep.h"
#include "braid/tensor/cpu/map.h"

namespace braid::cpu {
namespace {  // each file's own: it is compiled for several instruction sets

// f(e) for e < n, in any order. N: n, or 0 where the compiler cannot know it. g++ unrolls a loop of few before it looks
// for vectors, unless it is told not to.
template <int64_t N, class F>
[[gnu::always_inline]] inline void each(int64_t n, F f) {
  if constexpr (N == 8 || N == 16) {
#pragma GCC unroll 1
    BRAID_IVDEP
    for (int64_t e = 0; e < N; ++e) f(e);
  } else {
    BRAID_IVDEP
    for (int64_t e = 0; e < n; ++e) f(e);
  }
}

// x, y: (d); cosine, sine: (h). y may be x: both elements of a pair are read before either is written. H: h, or 0.
template <int64_t H, class A>
[[gnu::always_inline]] inline void rotate(const A* x, int64_t d, int64_t h, const A* cosine, const A* sine, A sign,
                                          A* y) {
  each<H>(h, [=](int64_t e) BRAID_INLINE {
    const A first = x[e], second = x[e + h], sine_e = sign * sine[e];
    y[e] = first * cosine[e] - second * sine_e;
    y[e + h] = second * cosine[e] + first * sine_e;
  });
  if (d > 2 * h && y != x) std::memcpy(y + 2 * h, x + 2 * h, static_cast<size_t>(d - 2 * h) * sizeof(A));
}

}  // namespace
}  // namespace braid::cpu
