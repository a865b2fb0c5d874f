// Tiles where W's rows are contiguous: MR x NR dot products, a vector of partial sums each.
#pragma once
#include "braid/tensor/cpu/row_invariant/vector.h"

namespace braid::cpu::row_invariant::BRAID_ROW_INVARIANT_ISA {

// Adds the products of k elements to the partial sums at sums + i sums_row + j lanes, which begin at 0 when `first`.
// x: a slice of the panel, whose rows hold zeros from k to the next multiple of the lanes.
template <int MR, int NR, class T>
void dots_tile(const Accumulate<T>* x, int64_t x_row, const T* w, int64_t w_row, int64_t k, bool first,
               Accumulate<T>* sums, int64_t sums_row) {
  using A = Accumulate<T>;
  constexpr int W = kLanes<A>;
  V<A> sum[MR][NR];
#pragma GCC unroll 8
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < NR; ++j) sum[i][j] = first ? V<A>{} : load(sums + i * sums_row + j * W);
  }
  const auto step = [&](int64_t p, const auto& weights) __attribute__((always_inline)) {
    V<A> row[MR];
#pragma GCC unroll 8
    for (int i = 0; i < MR; ++i) row[i] = load(x + i * x_row + p);
#pragma GCC unroll 8
    for (int j = 0; j < NR; ++j) {
      const V<A> v = weights(w + j * w_row + p);
#pragma GCC unroll 8
      for (int i = 0; i < MR; ++i) sum[i][j] = multiply_add(row[i], v, sum[i][j]);
    }
  };
  int64_t p = 0;
  for (; p + W <= k; p += W) step(p, [](const T* at) { return load(at); });
  if (p < k) step(p, [n = k - p](const T* at) { return load_first(at, n); });
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
