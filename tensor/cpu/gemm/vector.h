// Vectors of the instruction set that a file is compiled for, as GCC and Clang vector types: one source for SSE, AVX2
// and AVX-512.
#pragma once
#include <cstring>
#if defined(BRAID_STRICT) && defined(__FMA__)
#include <immintrin.h>
#endif

namespace braid::cpu {
namespace {  // each file's own: it is compiled for several instruction sets

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
template <class T>
constexpr int kWidth = kVectorBytes / sizeof(T);

template <class T, int W>
struct VectorOf {
  typedef T type __attribute__((vector_size(W * sizeof(T))));
};
template <class T, int W>
using Vector = typename VectorOf<T, W>::type;

template <class V, class T>
inline V load(const T* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class V, class T>
inline void store(T* p, const V& v) {
  std::memcpy(p, &v, sizeof v);
}

// sum += x y. Strict kernels (tensor/strict.h) round it once on every instruction set, which takes a function call for
// each element where none multiplies and adds in one.
template <class V, class T>
[[gnu::always_inline]] inline void add_product(V& sum, T x, const V& y) {
#ifndef BRAID_STRICT
  sum += x * y;
#elif defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    sum = V(_mm512_fmadd_ps(_mm512_set1_ps(x), __m512(y), __m512(sum)));
  else
    sum = V(_mm512_fmadd_pd(_mm512_set1_pd(x), __m512d(y), __m512d(sum)));
#elif defined(__FMA__)
  if constexpr (sizeof(T) == 4)
    sum = V(_mm256_fmadd_ps(_mm256_set1_ps(x), __m256(y), __m256(sum)));
  else
    sum = V(_mm256_fmadd_pd(_mm256_set1_pd(x), __m256d(y), __m256d(sum)));
#else
  for (size_t l = 0; l < sizeof(V) / sizeof(T); ++l) {
    if constexpr (sizeof(T) == 4)
      sum[l] = __builtin_fmaf(x, y[l], sum[l]);
    else
      sum[l] = __builtin_fma(x, y[l], sum[l]);
  }
#endif
}

// Transposes 8 x 8: three rounds exchange blocks of 1, 2 and 4 between neighbours.
template <class V>
inline void transpose8(V (&r)[8]) {
  const auto exchange1 = [](V& x, V& y) {
    const V a = x, b = y;
    x = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
    y = __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
  };
  const auto exchange2 = [](V& x, V& y) {
    const V a = x, b = y;
    x = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
    y = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
  };
  const auto exchange4 = [](V& x, V& y) {
    const V a = x, b = y;
    x = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    y = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
  };
  exchange1(r[0], r[1]), exchange1(r[2], r[3]), exchange1(r[4], r[5]), exchange1(r[6], r[7]);
  exchange2(r[0], r[2]), exchange2(r[1], r[3]), exchange2(r[4], r[6]), exchange2(r[5], r[7]);
  exchange4(r[0], r[4]), exchange4(r[1], r[5]), exchange4(r[2], r[6]), exchange4(r[3], r[7]);
}

}  // namespace
}  // namespace braid::cpu
