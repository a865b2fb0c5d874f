// Tiles where W's rows are contiguous: MR x NR dot products, a vector of partial sums each.
#pragma once
#include "braid/tensor/cpu/row_invariant/vector.h"

namespace braid::cpu::row_invariant::BRAID_ROW_INVARIANT_ISA {

// Rows of W that a tile asks memory for, while it computes: those of the next strip, as far as the tile is deep.
template <class T>
struct Ahead {
  const T* first;
  int64_t rows;
};

// Adds the products of k elements to the partial sums at sums + i sums_row + j lanes, which begin at 0 when `first`.
// x: a slice of the panel, whose rows hold zeros from k to the next multiple of a vector's elements.
template <int MR, int NR, class T>
[[gnu::noinline]] void dots_tile(const Packed<T>* x, int64_t x_row, const T* w, int64_t w_row, int64_t k,
                                 Ahead<T> ahead, bool first, Accumulate<T>* sums, int64_t sums_row) {
  using A = Accumulate<T>;
  constexpr int W = kLanes<A>, kStep = kElements<T>, kLine = 64 / sizeof(T);
  V<A> sum[MR][NR];
#pragma GCC unroll 8
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < NR; ++j) sum[i][j] = first ? V<A>{} : load(sums + i * sums_row + j * W);
  }
  const auto step = [&](int64_t p, const auto& weights) __attribute__((always_inline)) {
    decltype(load_operand<T>(x)) row[MR];
#pragma GCC unroll 8
    for (int i = 0; i < MR; ++i) {
      row[i] = load_operand<T>(x + i * x_row + p);
      keep(row[i]);
    }
#pragma GCC unroll 8
    for (int j = 0; j < NR; ++j) {
      const auto v = weights(w + j * w_row + p);
#pragma GCC unroll 8
      for (int i = 0; i < MR; ++i) add_product(sum[i][j], row[i], v);
    }
  };
  const auto whole = [](const T* at) __attribute__((always_inline)) { return load_operand<T>(at); };
  int64_t p = 0;
  for (; p + kLine <= k; p += kLine) {
    for (int64_t j = 0; j < ahead.rows; ++j) __builtin_prefetch(ahead.first + j * w_row + p, 0, 2);
#pragma GCC unroll 1
    for (int s = 0; s < kLine; s += kStep) step(p + s, whole);
  }
  for (; p + kStep <= k; p += kStep) step(p, whole);
  if (p < k) step(p, [n = k - p](const T* at) { return load_first_operand<T>(at, n); });
#pragma GCC unroll 8
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < NR; ++j) store(sums + i * sums_row + j * W, sum[i][j]);
  }
}

// totals (m, n) from the partial sums (m, n, lanes).
template <class A>
void add_lanes(const A* sums, int64_t m, int64_t n, A* totals) {
  constexpr int W = kLanes<A>;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; j += W) {
      V<A> v[W];
      const A* from = sums + (i * n + j) * W;
      if (n - j >= W) {
#pragma GCC unroll 16
        for (int l = 0; l < W; ++l) v[l] = load(from + l * W);
        store(totals + i * n + j, lane_sums<A>(v));
      } else {
        for (int l = 0; l < W; ++l) v[l] = l < n - j ? load(from + l * W) : V<A>{};
        const V<A> last = lane_sums<A>(v);
        __builtin_memcpy(totals + i * n + j, &last, static_cast<size_t>(n - j) * sizeof(A));
      }
    }
  }
}

}  // namespace braid::cpu::row_invariant::BRAID_ROW_INVARIANT_ISA
