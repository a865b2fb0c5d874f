// Tiles where W's columns are contiguous: MR rows of x by NV vectors of totals, summed over ascending p.
#pragma once
#include "braid/tensor/cpu/row_invariant/vector.h"

namespace braid::cpu::row_invariant::BRAID_ROW_INVARIANT_ISA {

// Adds the products of k elements to the sums at sums + i sums_row + v lanes, which begin at 0 when `first`.
// w: element (j, p) at w[p w_depth + j].
template <int MR, int NV, class T>
[[gnu::noinline]] void columns_tile(const Accumulate<T>* x, int64_t x_row, const T* w, int64_t w_depth, int64_t k,
                                    bool first, Accumulate<T>* sums, int64_t sums_row) {
  using A = Accumulate<T>;
  constexpr int W = kLanes<A>;
  V<A> sum[MR][NV];
#pragma GCC unroll 8
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) sum[i][v] = first ? V<A>{} : load(sums + i * sums_row + v * W);
  }
  for (int64_t p = 0; p < k; ++p) {
    V<A> row[NV];
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) row[v] = load(w + p * w_depth + v * W);
#pragma GCC unroll 8
    for (int i = 0; i < MR; ++i) {
      const V<A> value = all(x[i * x_row + p]);
#pragma GCC unroll 8
      for (int v = 0; v < NV; ++v) add_product(sum[i][v], value, row[v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) store(sums + i * sums_row + v * W, sum[i][v]);
  }
}

}  // namespace braid::cpu::row_invariant::BRAID_ROW_INVARIANT_ISA
