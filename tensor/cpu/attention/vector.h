// Vectors of W lanes as GCC vector types: one source for every instruction set. The file that includes this one says
// which: BRAID_ATTENTION_ISA is the namespace of all that follows (two instruction sets must not share an inline
// function), BRAID_ATTENTION_BYTES the size of a vector. BRAID_ATTENTION_STRICT: the kernels of StrictBits
// (tensor/strict.h), with the vectors of AVX-512 on every instruction set, products and sums rounded one by one.
#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#if defined(__FMA__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "braid/tensor/base/widen.h"
#include "braid/tensor/dtype.h"

namespace braid::cpu::attention {
float strict_log(float x);  // variants.cpp: the same code whatever the caller is compiled for
}

namespace braid::cpu::attention::BRAID_ATTENTION_ISA {

#if BRAID_ATTENTION_BYTES == 64 && !(defined(BRAID_ATTENTION_STRICT) && !defined(__AVX512F__))
inline constexpr bool kManyRegisters = true;  // 32 vector registers rather than 16
#else
inline constexpr bool kManyRegisters = false;
#endif

template <class T>
inline constexpr int kLanes = BRAID_ATTENTION_BYTES / sizeof(T);

template <class T>
struct VectorType {
  typedef T type __attribute__((vector_size(BRAID_ATTENTION_BYTES)));
};
template <class T>
using V = typename VectorType<T>::type;

inline V<float> load(const float* p) { return detail::bits_as<V<float>>(p); }
inline V<double> load(const double* p) { return detail::bits_as<V<double>>(p); }
inline V<float> load(const bfloat16* p) { return detail::widened_bf16<V<float>>(p); }
inline V<float> load(const float16* p) { return detail::widened_f16<V<float>>(p); }

// The first n lanes, then zeros; nothing beyond is read.
template <class T, class From>
inline V<T> load_first(const From* p, int64_t n) {
#if BRAID_ATTENTION_BYTES == 64 && !defined(BRAID_ATTENTION_STRICT)
  if constexpr (std::is_same_v<From, float>)
    return V<T>(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p));
  if constexpr (sizeof(From) == 2) {
    const __m256i bits = _mm256_maskz_loadu_epi16(static_cast<__mmask16>((1u << n) - 1), p);
    return load(reinterpret_cast<const From*>(&bits));
  }
#endif
  alignas(BRAID_ATTENTION_BYTES) unsigned char bytes[kLanes<T> * sizeof(From)] = {};
  __builtin_memcpy(bytes, p, static_cast<size_t>(n) * sizeof(From));
  return load(reinterpret_cast<const From*>(bytes));
}

template <class T>
inline void store(T* p, V<T> v) {
  __builtin_memcpy(p, &v, sizeof v);
}
template <class T>
inline V<T> all(T x) {
  return x - V<T>{};
}

// x y + z, rounded once where the instruction set can: for sums that loops of several shapes must round alike, since a
// compiler chooses for each loop whether it fuses.
template <class T>
inline V<T> multiply_add(V<T> x, V<T> y, V<T> z) {
#if defined(BRAID_ATTENTION_STRICT)
  return x * y + z;
#elif BRAID_ATTENTION_BYTES == 64
  if constexpr (sizeof(T) == 4) return V<T>(_mm512_fmadd_ps(__m512(x), __m512(y), __m512(z)));
  if constexpr (sizeof(T) == 8) return V<T>(_mm512_fmadd_pd(__m512d(x), __m512d(y), __m512d(z)));
#elif BRAID_ATTENTION_BYTES == 32
  if constexpr (sizeof(T) == 4) return V<T>(_mm256_fmadd_ps(__m256(x), __m256(y), __m256(z)));
  if constexpr (sizeof(T) == 8) return V<T>(_mm256_fmadd_pd(__m256d(x), __m256d(y), __m256d(z)));
#elif defined(__aarch64__)
  if constexpr (sizeof(T) == 4) return V<T>(vfmaq_f32(float32x4_t(z), float32x4_t(x), float32x4_t(y)));
  if constexpr (sizeof(T) == 8) return V<T>(vfmaq_f64(float64x2_t(z), float64x2_t(x), float64x2_t(y)));
#else
  return x * y + z;
#endif
}

// Pairs: 32-bit words of two neighbouring values of bf16, the first in the lower half. Products of words are summed in
// f32; where the processor has instructions for them, numbers below 2^-126 count as zero.
#ifdef BRAID_ATTENTION_PAIRS
template <class T>
inline constexpr bool kPairs = std::is_same_v<T, float>;

inline V<float> all_words(float x) {
#ifdef __AVX512BF16__
  return V<float>(_mm512_set1_ps(x));
#else
  V<float> words;
  for (int l = 0; l < kLanes<float>; ++l) __builtin_memcpy(reinterpret_cast<float*>(&words) + l, &x, sizeof x);
  return words;
#endif
}

#ifndef __AVX512BF16__
typedef uint32_t Words __attribute__((vector_size(BRAID_ATTENTION_BYTES)));
// The bits of x rounded to bf16, in the upper half of each lane.
inline Words upper_halves(V<float> x) {
  const Words bits = reinterpret_cast<Words>(x), rounded = bits + 0x7fff + ((bits >> 16) & 1);
  return ((bits & 0x7fffffff) > 0x7f800000 ? (bits | 0x400000) : rounded) & 0xffff0000;
}
#endif

// sum += x0 y0 + x1 y1 in every lane.
inline void add_pair_products(V<float>& sum, V<float> x, V<float> y) {
#ifdef __AVX512BF16__
  sum = V<float>(_mm512_dpbf16_ps(__m512(sum), reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(y)));
#else
  const Words a = reinterpret_cast<Words>(x), b = reinterpret_cast<Words>(y);
  sum += reinterpret_cast<V<float>>(a << 16) * reinterpret_cast<V<float>>(b << 16);
  sum += reinterpret_cast<V<float>>(a & 0xffff0000) * reinterpret_cast<V<float>>(b & 0xffff0000);
#endif
}
// x, rounded to bf16, as half as many words.
inline void store_pairs(float* words, V<float> x) {
#ifdef __AVX512BF16__
  const __m256bh narrow = _mm512_cvtneps_pbh(__m512(x));
  __builtin_memcpy(words, &narrow, sizeof narrow);
#else
  const Words bits = upper_halves(x);
  for (int l = 0; l < kLanes<float>; l += 2) {
    const uint32_t word = bits[l] >> 16 | bits[l + 1];
    __builtin_memcpy(words + l / 2, &word, sizeof word);
  }
#endif
}
// Word l: lane l of x and of y, rounded to bf16.
inline V<float> pair_words(V<float> x, V<float> y) {
#ifdef __AVX512BF16__
  const auto bits = [](V<float> v) {
    return _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(__m512(v))));
  };
  return V<float>(_mm512_castsi512_ps(_mm512_or_si512(bits(x), _mm512_slli_epi32(bits(y), 16))));
#else
  return reinterpret_cast<V<float>>(upper_halves(x) >> 16 | upper_halves(y));
#endif
}
#else
template <class T>
inline constexpr bool kPairs = false;
#endif
// Pairs are multiplied as tiles of AMX (tile_product.h).
#ifdef BRAID_ATTENTION_TILES
template <class T>
inline constexpr bool kTiles = kPairs<T>;
#else
template <class T>
inline constexpr bool kTiles = false;
#endif

template <class T>
inline V<T> larger(V<T> x, V<T> y) {  // NaN in y wins
  return x > y ? x : y;
}

// exp(x) for x that are not positive beyond rounding, as differences from a row's maximum are: x = n ln2 + r,
// exp(x) = 2^n exp(r), within 2 ulp; 0 below 2^-126; NaN stays NaN.
inline V<float> exp(V<float> x) {
  typedef int32_t Int __attribute__((vector_size(BRAID_ATTENTION_BYTES)));
  const V<float> low = all(-87.3365402f), magic = all(12582912.0f);  // adding it leaves an integer in the low bits
  const V<float> c = x < low ? low : x;
  const V<float> shifted = c * 1.44269504088896341f + magic, n = shifted - magic;
  const V<float> r = (c - n * 0.693359375f) - n * -2.12194440e-4f;
  V<float> p = 1.392656857e-3f * r + 8.363348947e-3f;
  p = p * r + 4.166655177e-2f;
  p = p * r + 1.666657597e-1f;
  p = p * r + 0.5f;
  p = p * r * r + r + 1.0f;
  const Int power = (reinterpret_cast<Int>(shifted) - (0x4b400000 - 127)) << 23;  // 0x4b400000: the bits of magic
  const V<float> y = p * reinterpret_cast<V<float>>(power);
  return x < low ? V<float>{} : y;
}
inline V<double> exp(V<double> x) {
  V<double> y{};
  for (int l = 0; l < kLanes<double>; ++l) y[l] = __builtin_exp(x[l]);
  return y;
}
#ifdef BRAID_ATTENTION_STRICT  // not the C library's, which chooses code by the processor
inline float log(float x) { return strict_log(x); }
#else
inline float log(float x) { return __builtin_logf(x); }
#endif
inline double log(double x) { return __builtin_log(x); }

// Lane i of the result: all lanes of v[i] folded into one. v[0..W) is used up. A step puts together neighbours of two
// vectors, those of a into the lower half of each group: first lanes inside pieces of 16 bytes, which is where
// instructions move lanes in one cycle, then whole pieces.
template <class T>
constexpr int folded_from(int lane, int group, int unit, int which) {  // of a, or W + the lane of b; a neighbour: 0, 1
  const int start = lane / group * group, at = lane % group / unit, n = group / unit;
  return (at < n / 2 ? 0 : kLanes<T>)+start + (2 * at % n + which) * unit + lane % unit;
}
template <int Group, int Unit, class T, class Op, size_t... I>
inline V<T> fold_pair(V<T> a, V<T> b, Op op, std::index_sequence<I...>) {
  return op(__builtin_shufflevector(a, b, folded_from<T>(I, Group, Unit, 0)...),
            __builtin_shufflevector(a, b, folded_from<T>(I, Group, Unit, 1)...));
}
// The steps from From vectors, W or what earlier steps left of them, to To vectors, for From / To neighbours at v.
template <int From, int To, class T, class Op>
inline V<T> fold_lanes(V<T>* v, Op op) {
  constexpr int W = kLanes<T>, L = 16 / sizeof(T),
                piece = W > L ? L : 1;  // a vector of one piece has the first steps only
#pragma GCC unroll 4
  for (int n = From; n > To; n /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < n / To / 2; ++i) {
      constexpr auto lanes = std::make_index_sequence<W>();
      v[i] = n > W / L ? fold_pair<L, 1, T>(v[2 * i], v[2 * i + 1], op, lanes)
                       : fold_pair<W, piece, T>(v[2 * i], v[2 * i + 1], op, lanes);
    }
  }
  return v[0];
}
template <class T, int From = kLanes<T>, int To = 1>
inline V<T> lane_sums(V<T>* v) {
  return fold_lanes<From, To, T>(v, [](V<T> a, V<T> b) { return a + b; });
}
template <class T>
inline V<T> lane_maxima(V<T>* v) {
  return fold_lanes<kLanes<T>, 1, T>(v, [](V<T> a, V<T> b) { return larger<T>(a, b); });
}

// Joins the statistics of parts of the keys, `stride` apart: the maximum of a part becomes the factor that turns its
// exponentials into probabilities, 0 where every score of the row is -inf. top, sum: those of all parts.
template <class T>
inline void join_parts(T* tops, const T* sums, int64_t stride, int64_t count, V<T>& top, V<T>& sum) {
  top = all(std::numeric_limits<T>::lowest()), sum = V<T>{};
  for (int64_t i = 0; i < count; ++i) top = larger<T>(top, load(tops + i * stride));
  for (int64_t i = 0; i < count; ++i) {
    const V<T> x = exp(load(tops + i * stride) - top);
    store(tops + i * stride, x);
    sum += x * load(sums + i * stride);
  }
  for (int64_t i = 0; i < count; ++i) store(tops + i * stride, sum != V<T>{} ? load(tops + i * stride) / sum : V<T>{});
}

}  // namespace braid::cpu::attention::BRAID_ATTENTION_ISA
