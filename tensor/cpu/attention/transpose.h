// Rows of keys to lanes of a key vector.
#pragma once
#include "braid/tensor/base/integers.h"
#include "braid/tensor/cpu/attention/vector.h"

namespace braid::cpu::attention::BRAID_ATTENTION_ISA {

// Lane l of row i and lane i of row l change places in a square of W vectors: in each step the two off-diagonal
// quarters of all squares of 2 S lanes.
template <int S, class T, size_t... L>
[[gnu::always_inline]] inline void exchange_quarters(V<T>& a, V<T>& b, std::index_sequence<L...>) {
  constexpr int W = kLanes<T>;
  const V<T> upper = __builtin_shufflevector(a, b, ((L & S) != 0 ? W + int(L) - S : int(L))...);
  b = __builtin_shufflevector(a, b, ((L & S) != 0 ? W + int(L) : int(L) + S)...);
  a = upper;
}
template <int S, class T>
[[gnu::always_inline]] inline void transpose(V<T>* v) {
#pragma GCC unroll 16
  for (int i = 0; i < kLanes<T>; ++i)
    if ((i & S) == 0) exchange_quarters<S, T>(v[i], v[i + S], std::make_index_sequence<kLanes<T>>());
  if constexpr (S > 1) transpose<S / 2, T>(v);
}

// rows: W of them, `length` long, of T or of 16 bits -> out [length][W].
template <class T, class E>
void transpose_rows(const E* const* rows, int64_t length, T* out) {
  constexpr int64_t W = kLanes<T>;
  const bool square = length >= W;
  const int64_t count = square ? W : length;
  for (int64_t i = 0; i < length; i += W) {
    if (square && i > length - W) i = length - W;  // the last square takes some elements a second time
    V<T> v[W];
#pragma GCC unroll 16
    for (int64_t l = 0; l < W; ++l) v[l] = square ? load(rows[l] + i) : load_first<T>(rows[l] + i, count);
    transpose<W / 2, T>(v);
    for (int64_t l = 0; l < count; ++l) store(out + (i + l) * W, v[l]);
  }
}

// Values [e, e + W) of the row of d values that begins at element `at`, zeros beyond d. Pairs: [e, e + 2 W), in words.
template <class T>
[[gnu::always_inline]] inline V<T> load_part(const InputRows& rows, int64_t at, int64_t e, int64_t d) {
  constexpr int64_t W = kLanes<T>, size = kPairs<T> ? 2 * W : W;  // values
  const int64_t n = d - e < size ? d - e : size;
  V<T> v{};
  if constexpr (kPairs<T>) {
    const uint16_t* bits = bits_at(rows, at + e);
    __builtin_memcpy(&v, bits, n == size ? sizeof v : static_cast<size_t>(n) * 2);
  } else if (n == size) {
    v = load(input_row<T>(rows, at + e, W, reinterpret_cast<T*>(&v)));
  } else {
    T buffer[W];
    const T* values = input_row<T>(rows, at + e, n, buffer);
    for (int64_t l = 0; l < n; ++l) v[l] = values[l];
  }
  return v;
}

// One key vector: `count` rows of d values, from element `at` on, row_stride apart -> out [d][W], pairs: [d / 2][W];
// zeros beyond, up to a multiple of 16 words for tiles, of W for strict kernels.
template <class T>
void pack_key_vector(const InputRows& rows, int64_t at, int64_t row_stride, int64_t count, int64_t d, T* out) {
  constexpr int64_t W = kLanes<T>, values = kPairs<T> ? 2 : 1;  // of a lane
#ifdef BRAID_ATTENTION_STRICT
  const int64_t depth = detail::round_up(d, W);
#else
  const int64_t depth = detail::ceil_div(d, values);
#endif
  for (int64_t i = 0; i < depth; i += W) {
    V<T> v[W];
    for (int64_t l = 0; l < W; ++l) v[l] = l < count ? load_part<T>(rows, at + l * row_stride, i * values, d) : V<T>{};
    transpose<W / 2, T>(v);
    for (int64_t l = 0; l < W && i + l < depth; ++l) store(out + (i + l) * W, v[l]);
  }
  for (int64_t i = depth; kTiles<T> && i % 16 != 0; ++i) store(out + i * W, V<T>{});
}

}  // namespace braid::cpu::attention::BRAID_ATTENTION_ISA
