// The intrinsics of AVX-512 and AVX-VNNI that Braid's kernels use, in instructions of AVX2, so that these kernels run
// where the processor has neither. Included before every other line of such a file, with BRAID_EMULATE_AVX512
// (CMakeLists.txt); their results are those that Intel's Software Developer's Manual gives for the instructions.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace braid::emulated {
namespace {  // each file's own, as its kernels are

// A vector of 64 bytes is two of 32.
template <class Half, class Whole>
inline Half half(Whole v, int which) {
  Half h;
  std::memcpy(&h, reinterpret_cast<const char*>(&v) + 32 * which, 32);
  return h;
}
template <class Whole, class Half>
inline Whole join(Half low, Half high) {
  Whole v;
  std::memcpy(&v, &low, 32);
  std::memcpy(reinterpret_cast<char*>(&v) + 32, &high, 32);
  return v;
}
template <class Whole, class Half, class F, class... X>
inline Whole by_halves(F f, X... x) {
  return join<Whole, Half>(f(half<Half>(x, 0)...), f(half<Half>(x, 1)...));
}
template <class Whole>
inline Whole load(const void* p) {
  Whole v;
  std::memcpy(&v, p, 64);
  return v;
}
inline void store(void* p, __m512i v) { std::memcpy(p, &v, 64); }

inline __m512 load_ps(const void* p) { return load<__m512>(p); }
inline __m512d load_pd(const void* p) { return load<__m512d>(p); }
inline __m512i load_si512(const void* p) { return load<__m512i>(p); }
inline void store_ps(void* p, __m512 v) { std::memcpy(p, &v, 64); }
inline __m512 set1_ps(float x) { return join<__m512>(_mm256_set1_ps(x), _mm256_set1_ps(x)); }
inline __m512d set1_pd(double x) { return join<__m512d>(_mm256_set1_pd(x), _mm256_set1_pd(x)); }
inline __m512i set1_epi32(int x) { return join<__m512i>(_mm256_set1_epi32(x), _mm256_set1_epi32(x)); }
inline __m512 setzero_ps() { return set1_ps(0); }
inline __m512i setzero_si512() { return set1_epi32(0); }
inline __m512 castsi512_ps(__m512i v) { return load<__m512>(&v); }

// Masked: elements whose bit is 0 are neither read nor written; read, they are 0.
template <class Vector, class Element, class Mask>
inline Vector maskz_load(Mask mask, const void* p) {
  constexpr int n = sizeof(Vector) / sizeof(Element);
  Element x[n] = {};
  for (int i = 0; i < n; ++i)
    if (mask >> i & 1) std::memcpy(x + i, static_cast<const char*>(p) + i * sizeof(Element), sizeof(Element));
  Vector v;
  std::memcpy(&v, x, sizeof v);
  return v;
}
template <class Element, class Vector, class Mask>
inline void mask_store(void* p, Mask mask, Vector v) {
  for (size_t i = 0; i < sizeof v / sizeof(Element); ++i) {
    if (!(mask >> i & 1)) continue;
    std::memcpy(static_cast<char*>(p) + i * sizeof(Element), reinterpret_cast<const char*>(&v) + i * sizeof(Element),
                sizeof(Element));
  }
}
inline __m512 maskz_loadu_ps(__mmask16 mask, const void* p) { return maskz_load<__m512, float>(mask, p); }
inline __m512i maskz_loadu_epi16(__mmask32 mask, const void* p) { return maskz_load<__m512i, uint16_t>(mask, p); }
inline __m256i maskz_loadu_epi16_256(__mmask16 mask, const void* p) { return maskz_load<__m256i, uint16_t>(mask, p); }
inline void mask_storeu_ps(void* p, __mmask16 mask, __m512 v) { mask_store<float>(p, mask, v); }
inline void mask_storeu_epi16_256(void* p, __mmask16 mask, __m256i v) { mask_store<uint16_t>(p, mask, v); }

inline __m512 add_ps(__m512 x, __m512 y) {
  return by_halves<__m512, __m256>([](__m256 a, __m256 b) { return _mm256_add_ps(a, b); }, x, y);
}
inline __m512 fmadd_ps(__m512 x, __m512 y, __m512 z) {
  return by_halves<__m512, __m256>([](__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }, x, y, z);
}
inline __m512d fmadd_pd(__m512d x, __m512d y, __m512d z) {
  return by_halves<__m512d, __m256d>([](__m256d a, __m256d b, __m256d c) { return _mm256_fmadd_pd(a, b, c); }, x, y, z);
}

inline __m512i or_si512(__m512i x, __m512i y) {
  return by_halves<__m512i, __m256i>([](__m256i a, __m256i b) { return _mm256_or_si256(a, b); }, x, y);
}
inline __m512i slli_epi32(__m512i x, unsigned count) {
  return by_halves<__m512i, __m256i>([count](__m256i a) { return _mm256_slli_epi32(a, static_cast<int>(count)); }, x);
}
inline int32_t reduce_add_epi32(__m512i v) {  // modulo 2^32
  uint32_t x[16], sum = 0;
  std::memcpy(x, &v, sizeof x);
  for (const uint32_t a : x) sum += a;
  return static_cast<int32_t>(sum);
}
inline __m512i unpacklo_epi32(__m512i x, __m512i y) {
  return by_halves<__m512i, __m256i>([](__m256i a, __m256i b) { return _mm256_unpacklo_epi32(a, b); }, x, y);
}
inline __m512i unpackhi_epi32(__m512i x, __m512i y) {
  return by_halves<__m512i, __m256i>([](__m256i a, __m256i b) { return _mm256_unpackhi_epi32(a, b); }, x, y);
}
inline __m512i unpacklo_epi64(__m512i x, __m512i y) {
  return by_halves<__m512i, __m256i>([](__m256i a, __m256i b) { return _mm256_unpacklo_epi64(a, b); }, x, y);
}
inline __m512i unpackhi_epi64(__m512i x, __m512i y) {
  return by_halves<__m512i, __m256i>([](__m256i a, __m256i b) { return _mm256_unpackhi_epi64(a, b); }, x, y);
}
// Quarters of 16 bytes: the lower two of x and the upper two of y, each named by two bits of `which`.
inline __m512i shuffle_i32x4(__m512i x, __m512i y, int which) {
  char from[2][64], to[64];
  std::memcpy(from[0], &x, 64);
  std::memcpy(from[1], &y, 64);
  for (int q = 0; q < 4; ++q) std::memcpy(to + 16 * q, from[q / 2] + 16 * (which >> 2 * q & 3), 16);
  return load<__m512i>(to);
}
inline __m512i cvtepu16_epi32(__m256i x) {
  return join<__m512i>(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(x)),
                       _mm256_cvtepu16_epi32(_mm256_extracti128_si256(x, 1)));
}
inline __m512i maskz_cvtepu16_epi32(__mmask16 mask, __m256i x) {
  const __m512i y = cvtepu16_epi32(x);
  return maskz_load<__m512i, uint32_t>(mask, &y);
}
inline __m512 cvtph_ps(__m256i x) {
  return join<__m512>(_mm256_cvtph_ps(_mm256_castsi256_si128(x)), _mm256_cvtph_ps(_mm256_extracti128_si256(x, 1)));
}
inline __m512 maskz_cvtph_ps(__mmask16 mask, __m256i x) {
  const __m512 y = cvtph_ps(x);
  return maskz_load<__m512, float>(mask, &y);
}
// Rounded to nearest, the only way that is asked for.
inline __m256i maskz_cvtps_ph(__mmask16 mask, __m512 x, int) {
  const __m128i to[2] = {_mm256_cvtps_ph(half<__m256>(x, 0), _MM_FROUND_TO_NEAREST_INT),
                         _mm256_cvtps_ph(half<__m256>(x, 1), _MM_FROUND_TO_NEAREST_INT)};
  return maskz_load<__m256i, uint16_t>(mask, to);
}

// Numbers below the smallest normal one are 0, of their sign.
inline __m256 flushed(__m256 x) {
  const __m256 sign = _mm256_set1_ps(-0.0f), normal = _mm256_set1_ps(0x1p-126f);
  return _mm256_and_ps(x, _mm256_or_ps(sign, _mm256_cmp_ps(_mm256_andnot_ps(sign, x), normal, _CMP_NLT_UQ)));
}
// sum + x y of pairs of bf16: the upper values first, each sum rounded; subnormal operands and results count as 0.
inline __m256 dpbf16(__m256 sum, __m256i x, __m256i y) {
  const auto upper = [](__m256i v) {
    return flushed(_mm256_castsi256_ps(_mm256_and_si256(v, _mm256_set1_epi32(static_cast<int>(0xffff0000)))));
  };
  const auto lower = [](__m256i v) { return flushed(_mm256_castsi256_ps(_mm256_slli_epi32(v, 16))); };
  const __m256 first = flushed(_mm256_fmadd_ps(upper(x), upper(y), flushed(sum)));
  return flushed(_mm256_fmadd_ps(lower(x), lower(y), first));
}
inline __m512 dpbf16_ps(__m512 sum, __m512bh x, __m512bh y) {
  return join<__m512>(dpbf16(half<__m256>(sum, 0), half<__m256i>(x, 0), half<__m256i>(y, 0)),
                      dpbf16(half<__m256>(sum, 1), half<__m256i>(x, 1), half<__m256i>(y, 1)));
}
// Rounded to bf16, to the nearest and of two to the even one; subnormal numbers are 0, NaN is quiet.
inline __m256bh cvtneps_pbh(__m512 x) {
  uint32_t from[16];
  uint16_t to[16];
  std::memcpy(from, &x, sizeof from);
  for (int i = 0; i < 16; ++i) {
    const uint32_t bits = from[i], magnitude = bits & 0x7fffffff;
    const uint32_t rounded = magnitude > 0x7f800000   ? bits | 0x400000
                             : magnitude < 0x00800000 ? bits & 0x80000000
                                                      : bits + 0x7fff + (bits >> 16 & 1);
    to[i] = static_cast<uint16_t>(rounded >> 16);
  }
  __m256bh y;
  std::memcpy(&y, to, sizeof y);
  return y;
}

// Each 32-bit sum and four products of an unsigned and a signed byte, none of which overflows 16 bits.
inline __m256i dpbusd(__m256i sum, __m256i u, __m256i s) {
  const __m256i even = _mm256_madd_epi16(_mm256_and_si256(u, _mm256_set1_epi16(255)),
                                         _mm256_srai_epi16(_mm256_slli_epi16(s, 8), 8)),
                odd = _mm256_madd_epi16(_mm256_srli_epi16(u, 8), _mm256_srai_epi16(s, 8));
  return _mm256_add_epi32(sum, _mm256_add_epi32(even, odd));
}
inline __m512i dpbusd_epi32(__m512i sum, __m512i u, __m512i s) {
  return by_halves<__m512i, __m256i>([](__m256i a, __m256i b, __m256i c) { return dpbusd(a, b, c); }, sum, u, s);
}
// Each 32-bit sum and two products of signed 16-bit integers.
inline __m256i dpwssd(__m256i sum, __m256i x, __m256i y) { return _mm256_add_epi32(sum, _mm256_madd_epi16(x, y)); }
inline __m512i dpwssd_epi32(__m512i sum, __m512i x, __m512i y) {
  return by_halves<__m512i, __m256i>([](__m256i a, __m256i b, __m256i c) { return dpwssd(a, b, c); }, sum, x, y);
}

}  // namespace
}  // namespace braid::emulated

// Sources choose by these macros as for the real instructions.
#define BRAID_EMULATED_AVX512
#define __AVX512F__ 1
#ifdef BRAID_EMULATE_BF16
#define __AVX512BF16__ 1
#endif

#define _mm512_add_ps braid::emulated::add_ps
#define _mm512_castsi512_ps braid::emulated::castsi512_ps
#define _mm512_cvtepu16_epi32 braid::emulated::cvtepu16_epi32
#define _mm512_cvtneps_pbh braid::emulated::cvtneps_pbh
#define _mm512_cvtph_ps braid::emulated::cvtph_ps
#define _mm512_dpbf16_ps braid::emulated::dpbf16_ps
#define _mm512_dpbusd_epi32 braid::emulated::dpbusd_epi32
#define _mm512_dpwssd_epi32 braid::emulated::dpwssd_epi32
#define _mm512_fmadd_pd braid::emulated::fmadd_pd
#define _mm512_fmadd_ps braid::emulated::fmadd_ps
#define _mm512_load_si512 braid::emulated::load_si512
#define _mm512_loadu_pd braid::emulated::load_pd
#define _mm512_loadu_ps braid::emulated::load_ps
#define _mm512_loadu_si512 braid::emulated::load_si512
#define _mm512_mask_storeu_ps braid::emulated::mask_storeu_ps
#define _mm512_maskz_cvtepu16_epi32 braid::emulated::maskz_cvtepu16_epi32
#define _mm512_maskz_cvtph_ps braid::emulated::maskz_cvtph_ps
#define _mm512_maskz_cvtps_ph braid::emulated::maskz_cvtps_ph
#define _mm512_maskz_loadu_epi16 braid::emulated::maskz_loadu_epi16
#define _mm512_maskz_loadu_ps braid::emulated::maskz_loadu_ps
#define _mm512_or_si512 braid::emulated::or_si512
#define _mm512_reduce_add_epi32 braid::emulated::reduce_add_epi32
#define _mm512_set1_epi32 braid::emulated::set1_epi32
#define _mm512_set1_pd braid::emulated::set1_pd
#define _mm512_set1_ps braid::emulated::set1_ps
#define _mm512_setzero_ps braid::emulated::setzero_ps
#define _mm512_setzero_si512 braid::emulated::setzero_si512
#define _mm512_shuffle_i32x4 braid::emulated::shuffle_i32x4
#define _mm512_slli_epi32 braid::emulated::slli_epi32
#define _mm512_store_si512 braid::emulated::store
#define _mm512_storeu_ps braid::emulated::store_ps
#define _mm512_unpackhi_epi32 braid::emulated::unpackhi_epi32
#define _mm512_unpackhi_epi64 braid::emulated::unpackhi_epi64
#define _mm512_unpacklo_epi32 braid::emulated::unpacklo_epi32
#define _mm512_unpacklo_epi64 braid::emulated::unpacklo_epi64
#define _mm256_dpbusd_avx_epi32 braid::emulated::dpbusd
#define _mm256_dpwssd_avx_epi32 braid::emulated::dpwssd
#define _mm256_mask_storeu_epi16 braid::emulated::mask_storeu_epi16_256
#define _mm256_maskz_loadu_epi16 braid::emulated::maskz_loadu_epi16_256
