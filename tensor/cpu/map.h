// map(n, y, inputs(x, ...), f) is y[i] = f(x[i], ...), i < n: the loop of kernels that compute an element from one
// element of each input.
//
// Elements of 16 bits are converted in registers. A vector of words holds two of bf16 in each word: the odd one is an
// f32 once the lower half is cleared, the even one after a shift. So the lanes of a vector of words become a vector of
// its even elements and one of its odd ones, and no instruction moves a lane to another place, which widening and
// narrowing in order would.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "braid/tensor/base/widen.h"
#include "braid/tensor/cpu/gemm/vector.h"
#include "braid/tensor/cpu/ivdep.h"
#include "braid/tensor/dtype.h"

#if defined(__clang__)  // which unrolls a loop of known length before it looks for vectors
#define BRAID_VECTORS _Pragma("clang loop vectorize(assume_safety) unroll(disable)")
#else
#define BRAID_VECTORS
#endif
#define BRAID_INLINE __attribute__((always_inline))

namespace braid::cpu {
namespace {  // each file's own, as in vector.h

// So many elements at once, in f32. g++ unrolls a shorter loop before it looks for vectors, and keeps the arrays of
// this one in registers once it has found them.
constexpr int kChunk = 32;
using Chunk = std::array<float, kChunk>;
using Floats = Vector<float, kWidth<float>>;
using Words = Vector<uint32_t, kWidth<float>>;

// Not _mm512_cvtph_ps and _mm512_cvtepu16_epi32, in which g++ finds a register without a value.
[[gnu::always_inline]] inline Floats widened(const float16* p) {
#if defined(__AVX512F__)
  return Floats(_mm512_maskz_cvtph_ps(0xffff, load<__m256i>(p)));
#else
  return detail::widened_f16<Floats>(p);
#endif
}
[[gnu::always_inline]] inline Floats widened(const bfloat16* p) {
#if defined(__AVX512F__)
  return reinterpret_cast<Floats>(Words(_mm512_maskz_cvtepu16_epi32(0xffff, load<__m256i>(p))) << 16);
#else
  return detail::widened_bf16<Floats>(p);
#endif
}

// Memory of n elements that begins where a vector may: a vector across two lines of the cache takes twice as long.
template <class A>
class Lines {
 public:
  explicit Lines(int64_t n) : lines_(static_cast<size_t>((n + kPerLine - 1) / kPerLine)) {}
  A* data() { return lines_.empty() ? nullptr : lines_.front().v; }

 private:
  static constexpr int64_t kPerLine = 64 / sizeof(A);
  struct alignas(64) Line {
    A v[kPerLine];
  };
  std::vector<Line> lines_;
};

// y[i] = x[i], in f32.
template <class T>
[[gnu::always_inline]] inline void widen(int64_t n, const T* x, float* y) {
  constexpr int W = kWidth<float>;
  const int64_t whole = n / W * W;
  for (int64_t i = 0; i < whole; i += W) store(y + i, widened(x + i));
  for (int64_t i = whole; i < n; ++i) y[i] = float(x[i]);
}

// The chunk at p, in the order of one of T.
template <class T, class X>
[[gnu::always_inline]] inline Chunk loaded_chunk(const X* p) {
  constexpr int W = kWidth<float>;
  Chunk to;
#pragma GCC unroll 8
  for (int i = 0; i < kChunk; i += 2 * W) {
    float *even = to.data() + i, *odd = even + W;
    if constexpr (std::is_same_v<X, bfloat16>) {
      const auto pairs = load<Words>(p + i);
      store(even, pairs << 16);
      store(odd, pairs & 0xffff0000);
    } else if constexpr (std::is_same_v<X, float16>) {
      store(even, widened(p + i));
      store(odd, widened(p + i + W));
    } else {
      const auto a = load<Floats>(p + i), b = load<Floats>(p + i + W);
      if constexpr (std::is_same_v<T, bfloat16>) {
        [&]<int... l>(std::integer_sequence<int, l...>) BRAID_INLINE {
          store(even, __builtin_shufflevector(a, b, (2 * l)...));
          store(odd, __builtin_shufflevector(a, b, (2 * l + 1)...));
        }
        (std::make_integer_sequence<int, W>());
      } else {
        store(even, a);
        store(odd, b);
      }
    }
  }
  return to;
}

// The bits of bf16 nearest to the floats at p, in the upper halves.
[[gnu::always_inline]] inline Words upper_halves(const float* p) {
  const auto x = load<Floats>(p);
  const auto bits = reinterpret_cast<Words>(x);
  return x != x ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1);
}

// A vector of floats, in f16.
[[gnu::always_inline]] inline void store_f16(const float* from, float16* p) {
#if defined(__F16C__)
  const auto x = load<Floats>(from);
  const auto bits = reinterpret_cast<Words>(x);
  // A NaN becomes the one of float16::from_float(), which has none of its bits but the sign.
  const auto y = reinterpret_cast<Floats>(x != x ? (bits & 0x80000000) | 0x7fc00000 : bits);
#if defined(__AVX512F__)
  store(&p->bits, _mm512_maskz_cvtps_ph(0xffff, __m512(y), _MM_FROUND_TO_NEAREST_INT));
#else
  store(&p->bits, _mm256_cvtps_ph(__m256(y), _MM_FROUND_TO_NEAREST_INT));
#endif
#else
  for (int l = 0; l < kWidth<float>; ++l) p[l] = float16(from[l]);
#endif
}

template <class T>
[[gnu::always_inline]] inline void store_chunk(const Chunk& from, T* p) {
  constexpr int W = kWidth<float>;
#pragma GCC unroll 8
  for (int i = 0; i < kChunk; i += W) {
    const float* v = from.data() + i;
    if constexpr (std::is_same_v<T, bfloat16>) {
      store(&p[i].bits, upper_halves(v) >> 16 | (upper_halves(v + W) & 0xffff0000));
      i += W;
    } else {
      store_f16(v, p + i);
    }
  }
}

// y[i] = x[i], to nearest.
template <class T>
[[gnu::always_inline]] inline void narrow(int64_t n, const float* x, T* y) {
  constexpr int W = kWidth<float>;
  const int64_t whole = n / W * W;
  if constexpr (std::is_same_v<T, float16>) {
    for (int64_t i = 0; i < whole; i += W) store_f16(x + i, y + i);
  } else {
    using Halves = Vector<uint16_t, 2 * W>;
    const int64_t pairs = n / (2 * W) * (2 * W);
    for (int64_t i = 0; i < pairs; i += 2 * W) {
      const auto a = reinterpret_cast<Halves>(upper_halves(x + i)),
                 b = reinterpret_cast<Halves>(upper_halves(x + i + W));
      [&]<int... l>(std::integer_sequence<int, l...>) BRAID_INLINE {
        store(&y[i].bits, __builtin_shufflevector(a, b, (2 * l + 1)...));
      }
      (std::make_integer_sequence<int, 2 * W>());
    }
    if (pairs < whole)
      store(&y[pairs].bits, __builtin_convertvector(upper_halves(x + pairs) >> 16, Vector<uint16_t, W>));
  }
  for (int64_t i = whole; i < n; ++i) y[i] = T(x[i]);
}

// x[i] = T(x[i]), in f32.
template <class T>
[[gnu::always_inline]] inline void round_to(int64_t n, float* x) {
  constexpr int W = kWidth<float>;
  const int64_t whole = n / W * W;
  for (int64_t i = 0; i < whole; i += W) {
    if constexpr (std::is_same_v<T, float16>) {
      float16 half[W];
      store_f16(x + i, half);
      store(x + i, widened(half));
    } else {
      store(x + i, upper_halves(x + i) & 0xffff0000);
    }
  }
  for (int64_t i = whole; i < n; ++i) x[i] = float(T(x[i]));
}

// n elements of p, then zeros.
template <class X>
struct Padded {
  X v[kChunk] = {};
  Padded(const X* p, int64_t n) { std::copy_n(p, n, v); }
};

template <class T, size_t K, class F, class... X>
[[gnu::always_inline]] inline void map_arrays(int64_t n, const std::array<T*, K>& y, F f, const X*... x) {
  using Results = std::array<Accumulate<T>, K>;
  if constexpr (sizeof(T) > 2) {
    BRAID_IVDEP
    for (int64_t i = 0; i < n; ++i) {
      const Results results = f(Accumulate<T>(x[i])...);
      for (size_t k = 0; k < K; ++k) y[k][i] = results[k];
    }
  } else {
    const auto chunk = [f](const std::array<T*, K>& to, const X*... from) BRAID_INLINE {
      Chunk out[K];
      const auto compute = [&](const auto&... in) BRAID_INLINE {
        BRAID_VECTORS
        for (size_t l = 0; l < kChunk; ++l) {
          const Results results = f(in[l]...);
          for (size_t k = 0; k < K; ++k) out[k][l] = results[k];
        }
      };
      compute(loaded_chunk<T>(from)...);
      for (size_t k = 0; k < K; ++k) store_chunk(out[k], to[k]);
    };
    int64_t i = 0;
    std::array<T*, K> to;
    for (; i + kChunk <= n; i += kChunk) {
      for (size_t k = 0; k < K; ++k) to[k] = y[k] + i;
      chunk(to, (x + i)...);
    }
    if (i == n) return;
    // The rest: a chunk of copies.
    T rest[K][kChunk];
    for (size_t k = 0; k < K; ++k) to[k] = rest[k];
    chunk(to, Padded<X>(x + i, n - i).v...);
    for (size_t k = 0; k < K; ++k) std::copy_n(rest[k], n - i, y[k] + i);
  }
}

template <class... X>
std::tuple<const X*...> inputs(const X*... x) {
  return {x...};
}

// Several results y[0][i], y[1][i], ... from one call of f, which returns an array of them, of the type Accumulate<T>.
// x: of T or of Accumulate<T>. Any of y is one array with any of x, or does not overlap it.
template <class T, size_t K, class F, class... X>
[[gnu::always_inline]] inline void map(int64_t n, const std::array<T*, K>& y, std::tuple<const X*...> x, F f) {
  [&]<size_t... k>(std::index_sequence<k...>) BRAID_INLINE { map_arrays(n, y, f, std::get<k>(x)...); }
  (std::index_sequence_for<X...>());
}
// One result.
template <class T, class F, class... X>
[[gnu::always_inline]] inline void map(int64_t n, T* y, std::tuple<const X*...> x, F f) {
  map(n, std::array{y}, x, [f](auto... v) { return std::array{f(v...)}; });
}

}  // namespace
}  // namespace braid::cpu
