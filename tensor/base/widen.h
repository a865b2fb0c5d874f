// Vectors of f32 from bf16 and f16, whose values f32 holds exactly. V is a GCC vector of float, of any size.
//
// The functions have internal linkage: this file is compiled for several instruction sets, and the linker would keep
// one function for all of them.
#pragma once
#include <cstdint>
#if defined(__FMA__)
#include <immintrin.h>
#endif

namespace braid::detail {

template <class V>
struct WordsOf {
  typedef uint16_t Half __attribute__((vector_size(sizeof(V) / 2)));
  typedef uint32_t Word __attribute__((vector_size(sizeof(V))));
  typedef int32_t Int __attribute__((vector_size(sizeof(V))));
};

template <class V>
[[gnu::always_inline]] static inline V bits_as(const void* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

// Words of 16-bit numbers. g++ 12 takes five instructions for the conversion of a vector of them.
template <class V>
[[gnu::always_inline]] static inline typename WordsOf<V>::Word zero_extended(const void* p) {
#if defined(__AVX512F__) || defined(BRAID_EMULATED_AVX512)
  if constexpr (sizeof(V) == 64)
    return reinterpret_cast<typename WordsOf<V>::Word>(_mm512_cvtepu16_epi32(bits_as<__m256i>(p)));
#endif
#if defined(__AVX2__)
  if constexpr (sizeof(V) == 32)
    return reinterpret_cast<typename WordsOf<V>::Word>(_mm256_cvtepu16_epi32(bits_as<__m128i>(p)));
#endif
  return __builtin_convertvector(bits_as<typename WordsOf<V>::Half>(p), typename WordsOf<V>::Word);
}

template <class V>
[[gnu::always_inline]] static inline V widened_bf16(const void* p) {
  return reinterpret_cast<V>(zero_extended<V>(p) << 16);
}

template <class V>
[[gnu::always_inline]] static inline V widened_f16(const void* p) {
#if defined(__AVX512F__) || defined(BRAID_EMULATED_AVX512)
  if constexpr (sizeof(V) == 64) return reinterpret_cast<V>(_mm512_cvtph_ps(bits_as<__m256i>(p)));
#endif
#if defined(__F16C__)
  if constexpr (sizeof(V) == 32) return reinterpret_cast<V>(_mm256_cvtph_ps(bits_as<__m128i>(p)));
#endif
  using Int = typename WordsOf<V>::Int;
  const Int bits = reinterpret_cast<Int>(zero_extended<V>(p));
  const Int sign = (bits & 0x8000) << 16, magnitude = bits & 0x7fff, wide = magnitude << 13;
  const Int normal = wide + (112 << 23), infinite = wide | 0x7f800000;
  const Int subnormal = reinterpret_cast<Int>(__builtin_convertvector(magnitude, V) * 0x1p-24f);
  const Int y = magnitude < 0x400 ? subnormal : magnitude < 0x7c00 ? normal : infinite;
  return reinterpret_cast<V>(y | sign);
}

}  // namespace braid::detail
