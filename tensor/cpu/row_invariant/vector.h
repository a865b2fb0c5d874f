// Vectors as GCC vector types: one source for every instruction set. The file that includes this one says which:
// BRAID_ROW_INVARIANT_ISA is the namespace of all that follows (two instruction sets must not share an inline
// function), BRAID_ROW_INVARIANT_BYTES the size of a vector, and BRAID_ROW_INVARIANT_PAIRS, where it is defined, that
// the processor multiplies pairs of bf16.
#pragma once
#include <cstdint>
#include <type_traits>
#include <utility>
#if defined(__FMA__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "braid/tensor/base/widen.h"
#include "braid/tensor/dtype.h"

namespace braid::cpu::row_invariant::BRAID_ROW_INVARIANT_ISA {

inline constexpr int kBytes = BRAID_ROW_INVARIANT_BYTES;

template <class A>
inline constexpr int kLanes = kBytes / sizeof(A);

template <class A>
struct VectorType {
  typedef A type __attribute__((vector_size(BRAID_ROW_INVARIANT_BYTES)));
};
template <class A>
using V = typename VectorType<A>::type;

template <class A>
inline void store(A* p, V<A> v) {
  __builtin_memcpy(p, &v, sizeof v);
}
template <class A>
inline V<A> all(A x) {
  return x - V<A>{};
}

// Vectors of A from elements of T; every value of a 16-bit type is an f32.
#if BRAID_ROW_INVARIANT_BYTES == 64  // g++ 12 takes some copies by memcpy through the stack
inline V<float> load(const float* p) { return reinterpret_cast<V<float>>(_mm512_loadu_ps(p)); }
inline V<double> load(const double* p) { return reinterpret_cast<V<double>>(_mm512_loadu_pd(p)); }
#elif BRAID_ROW_INVARIANT_BYTES == 32
inline V<float> load(const float* p) { return reinterpret_cast<V<float>>(_mm256_loadu_ps(p)); }
inline V<double> load(const double* p) { return reinterpret_cast<V<double>>(_mm256_loadu_pd(p)); }
#else
inline V<float> load(const float* p) { return detail::bits_as<V<float>>(p); }
inline V<double> load(const double* p) { return detail::bits_as<V<double>>(p); }
#endif

inline V<float> load(const bfloat16* p) { return detail::widened_bf16<V<float>>(p); }
inline V<float> load(const float16* p) { return detail::widened_f16<V<float>>(p); }

// sum += x y, rounded once where the instruction set can: written out, because a compiler's own choice of what it fuses
// may differ between two tiles of different sizes, and because g++ otherwise moves sums between registers and memory.
inline void add_product(V<float>& sum, V<float> x, V<float> y) {
#if defined(BRAID_EMULATED_AVX512)
  sum = V<float>(_mm512_fmadd_ps(__m512(x), __m512(y), __m512(sum)));
#elif BRAID_ROW_INVARIANT_BYTES >= 32
  asm("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
#elif defined(__aarch64__)
  sum = V<float>(vfmaq_f32(float32x4_t(sum), float32x4_t(x), float32x4_t(y)));
#else
  sum += x * y;
#endif
}
inline void add_product(V<double>& sum, V<double> x, V<double> y) {
#if defined(BRAID_EMULATED_AVX512)
  sum = V<double>(_mm512_fmadd_pd(__m512d(x), __m512d(y), __m512d(sum)));
#elif BRAID_ROW_INVARIANT_BYTES >= 32
  asm("vfmadd231pd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
#elif defined(__aarch64__)
  sum = V<double>(vfmaq_f64(float64x2_t(sum), float64x2_t(x), float64x2_t(y)));
#else
  sum += x * y;
#endif
}

// How the tiles of dot products take elements of T: as a vector of A, or, where the processor multiplies pairs of bf16,
// as they are. Then a lane adds two products at a time (vdpbf16ps): rounded to f32, numbers below the smallest normal
// f32 taken for zero.
#ifdef BRAID_ROW_INVARIANT_PAIRS
template <class T>
inline constexpr bool kPairs = std::is_same_v<T, bfloat16>;
#else
template <class T>
inline constexpr bool kPairs = false;
#endif
template <class T>
using Packed = std::conditional_t<kPairs<T>, T, Accumulate<T>>;
template <class T>
inline constexpr int kElements = kBytes / sizeof(Packed<T>);  // of a vector
typedef uint16_t Pairs __attribute__((vector_size(BRAID_ROW_INVARIANT_BYTES)));

inline Pairs load_pairs(const void* p) {
#if BRAID_ROW_INVARIANT_BYTES == 64
  return reinterpret_cast<Pairs>(_mm512_loadu_si512(p));
#else
  return detail::bits_as<Pairs>(p);
#endif
}

template <class T, class From>
inline auto load_operand(const From* p) {
  if constexpr (kPairs<T>)
    return load_pairs(p);
  else
    return load(p);
}
#ifdef BRAID_ROW_INVARIANT_PAIRS
inline void add_product(V<float>& sum, Pairs x, Pairs y) {
#if defined(BRAID_EMULATED_AVX512)
  sum = V<float>(_mm512_dpbf16_ps(__m512(sum), __m512bh(x), __m512bh(y)));
#else
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
#endif
}
#endif

// v itself, from here on in a register: otherwise g++ reads it again wherever it is used, and the tiles wait for loads.
template <class Vector>
inline void keep([[maybe_unused]] Vector& v) {
#if defined(BRAID_EMULATED_AVX512)  // two registers
#elif defined(__AVX__)
  asm volatile("" : "+v"(v));
#elif defined(__SSE2__)
  asm volatile("" : "+x"(v));
#elif defined(__aarch64__)
  asm volatile("" : "+w"(v));
#endif
}

// The first n elements, then zeros.
template <class T>
inline V<Accumulate<T>> load_first(const T* p, int64_t n) {
  alignas(kBytes) unsigned char bytes[kBytes] = {};
  __builtin_memcpy(bytes, p, static_cast<size_t>(n) * sizeof(T));
  return load(reinterpret_cast<const T*>(bytes));
}

template <class T, class From>
inline auto load_first_operand(const From* p, int64_t n) {
  if constexpr (kPairs<T>) {
    alignas(kBytes) unsigned char bytes[kBytes] = {};
    __builtin_memcpy(bytes, p, static_cast<size_t>(n) * sizeof(From));
    return load_pairs(bytes);
  } else {
    return load_first(p, n);
  }
}

// Lane i of the result: the lanes of v[i], neighbours added first, then pairs of them, and so on. v[0..lanes) is used
// up.
template <class A, size_t... I>
inline V<A> add_pairs(V<A> a, V<A> b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, (2 * I)...) + __builtin_shufflevector(a, b, (2 * I + 1)...);
}
template <class A>
inline V<A> lane_sums(V<A>* v) {
#pragma GCC unroll 4
  for (int n = kLanes<A>; n > 1; n /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < n / 2; ++i) v[i] = add_pairs<A>(v[2 * i], v[2 * i + 1], std::make_index_sequence<kLanes<A>>());
  }
  return v[0];
}

}  // namespace braid::cpu::row_invariant::BRAID_ROW_INVARIANT_ISA
