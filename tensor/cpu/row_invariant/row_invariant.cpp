#include "braid/tensor/cpu/row_invariant/row_invariant.h"

#include <algorithm>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/cpu/row_invariant/variants.h"

namespace braid::cpu::row_invariant {

namespace {

// Rows of a task: some blocks, so that the rows of W, which the task reads once a block, come from a cache.
constexpr int64_t kTaskRows = 4 * kRows;

// y (m, n), from one row to the next y_row elements, = totals (m, n) + bias (n) + y.
template <class T, class Y>
void finish(const Accumulate<T>* totals, int64_t m, int64_t n, const T* bias, bool accumulate, Y* y, int64_t y_row) {
  using A = Accumulate<T>;
  for (int64_t i = 0; i < m; ++i) {
    const A* from = totals + i * n;
    Y* to = y + i * y_row;
    for (int64_t j = 0; j < n; ++j) {
      A total = from[j];
      if (bias) total += static_cast<A>(bias[j]);
      if (accumulate) total += static_cast<A>(to[j]);
      to[j] = Y(total);
    }
  }
}

}  // namespace

template <class T, class Y>
void multiply(const Products<T, Y>& p, FunctionRef<Operands<T>(int64_t i)> operands) {
  const Kernels& kernels = row_invariant::kernels();
  const int64_t across = detail::ceil_div(p.n, kColumns), down = detail::ceil_div(p.m, kTaskRows);
  // Columns of W are read in pieces of rows, which takes several times as long as whole rows.
  const int64_t slow = p.w_depth == 1 ? 1 : 4;
  // Reading W once counts as multiplying it by eight rows.
  const int64_t cost = (std::min(p.m, kTaskRows) + 8) * std::min(p.n, kColumns) * p.k / 8 * slow;
  parallel_for(p.count * down * across, grain_for(cost), [&](int64_t begin, int64_t end) {
    Accumulate<T> totals[kRows * kColumns];
    for (int64_t task = begin; task < end; ++task) {
      const int64_t product = task / (down * across), place = task % (down * across);
      const int64_t top = place / across * kTaskRows, rows = std::min(kTaskRows, p.m - top);
      const int64_t left = place % across * kColumns, n = std::min(kColumns, p.n - left);
      const Operands<T> at = operands(product);
      Y* y = p.y + product * p.m * p.n + left;
      const int64_t blocks = detail::ceil_div(rows, kRows);
      for (int64_t block = 0; block < blocks; ++block) {
        const int64_t i = top + rows * block / blocks, m = top + rows * (block + 1) / blocks - i;
        kernels.run(Block<T>{m, n, p.k, at.x + i * p.x_row, p.x_row, p.x_depth, at.w + left * p.w_row, p.w_row,
                             p.w_depth, block > 0, totals});
        finish<T, Y>(totals, m, n, p.bias ? p.bias + left : nullptr, p.accumulate, y + i * p.n, p.n);
      }
    }
  });
}

template void multiply(const Products<float, float>&, FunctionRef<Operands<float>(int64_t)>);
template void multiply(const Products<double, double>&, FunctionRef<Operands<double>(int64_t)>);
template void multiply(const Products<bfloat16, bfloat16>&, FunctionRef<Operands<bfloat16>(int64_t)>);
template void multiply(const Products<bfloat16, float>&, FunctionRef<Operands<bfloat16>(int64_t)>);
template void multiply(const Products<float16, float16>&, FunctionRef<Operands<float16>(int64_t)>);
template void multiply(const Products<float16, float>&, FunctionRef<Operands<float16>(int64_t)>);

}  // namespace braid::cpu::row_invariant
