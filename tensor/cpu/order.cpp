// Elements compared by size along the last axis. NaN counts as largest.
#include <algorithm>

#include "braid/tensor/cpu/loops.h"
#include "braid/tensor/cpu/sort.h"
#include "braid/tensor/kernels/order.h"
#include "braid/tensor/kernels/ordered.h"

namespace braid::cpu {

namespace {

template <bool smallest, class A>
void extreme_index(In x, Out index) {
  StridedView lx(x);
  int64_t n = x.dim(-1);
  int64_t* out = index.mutable_data<int64_t>();
  parallel_for(index.numel(), grain_for(2 * n), [&](int64_t begin, int64_t end) {
    A buffer[kBlock];
    for (int64_t r = begin; r < end; ++r) {
      A best = 0;
      int64_t at = -1;
      for (int64_t i = 0; i < n; i += kBlock) {
        int64_t length = std::min(kBlock, n - i);
        const A* v = load(lx, r * n + i, length, buffer);
        for (int64_t j = 0; j < length; ++j) {
          if (at < 0 || (smallest ? v[j] < best : v[j] > best) || (is_nan(v[j]) && !is_nan(best))) {
            best = v[j];
            at = i + j;
          }
        }
        if (is_nan(best)) break;
      }
      out[r] = at;
    }
  });
}

template <bool smallest>
void extreme_index(In x, Out index) {
  if (!is_float(x.dtype())) return extreme_index<smallest, int64_t>(x, index);
  visit_accumulate(x.dtype(), "argmax", [&]<class A>() { extreme_index<smallest, A>(x, index); });
}

void argmax(In x, Out index) { extreme_index<false>(x, index); }
void argmin(In x, Out index) { extreme_index<true>(x, index); }

void sort_backward(In dvalues, In indices, Out dx) {
  dx.fill(0);
  if (dvalues.numel() == 0) return;
  visit_float(dx.dtype(), "sort_backward", [&]<class T>() {
    const int64_t n = dx.dim(-1), k = dvalues.dim(-1);
    const T* from = dvalues.data<T>();
    const int64_t* index = indices.data<int64_t>();
    T* to = dx.mutable_data<T>();
    parallel_for(dvalues.numel() / k, grain_for(k), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t j = row * k; j < (row + 1) * k; ++j) to[row * n + index[j]] = from[j];
      }
    });
  });
}

void take(In x, In indices, Out y) {
  if (y.numel() == 0) return;
  visit_any(x.dtype(), [&]<class T>() {
    const int64_t n = x.dim(-1), k = y.dim(-1);
    const T* from = x.data<T>();
    const int64_t* index = indices.data<int64_t>();
    T* to = y.mutable_data<T>();
    parallel_for(y.numel() / k, grain_for(k), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t j = row * k; j < (row + 1) * k; ++j) to[j] = from[row * n + index[j]];
      }
    });
  });
}

void search(In sorted, In values, bool right, Out index) {
  if (index.numel() == 0) return;
  visit_any(values.dtype(), [&]<class T>() {
    const int64_t n = sorted.dim(-1), m = values.rank() > 0 ? values.dim(-1) : 1;
    const bool one_row = sorted.rank() == 1;
    const T *from = sorted.data<T>(), *value = values.data<T>();
    int64_t* out = index.mutable_data<int64_t>();
    parallel_for(index.numel(), grain_for(64), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = one_row ? from : from + i / m * n;
        out[i] = count_below(row, n, static_cast<Ordered<T>>(value[i]), right);
      }
    });
  });
}

}  // namespace

constinit const OrderKernels order_kernels{
    .argmax = argmax,
    .argmin = argmin,
    .sort = sort,
    .sort_backward = sort_backward,
    .take = take,
    .search = search,
};

}  // namespace braid::cpu
