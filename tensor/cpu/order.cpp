// Elements ordered by size along the last axis. NaN counts as largest.
#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "braid/tensor/cpu/loops.h"
#include "braid/tensor/kernels/order.h"

namespace braid::cpu {

namespace {

void argmax(In x, Out index) {
  visit_accumulate(x.dtype(), "argmax", [&]<class A>() {
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
            if (at < 0 || v[j] > best || (v[j] != v[j] && best == best)) {
              best = v[j];
              at = i + j;
            }
          }
        }
        out[r] = at;
      }
    });
  });
}

// The first k of each row by the strict order (value, index), which makes the result unique.
void sort(In x, bool descending, Out values, Out indices) {
  visit_float(x.dtype(), "sort", [&]<class T>() {
    const int64_t n = x.dim(-1), k = values.dim(-1);
    if (values.numel() == 0) return;
    const T* from = x.data<T>();
    T* sorted = values.mutable_data<T>();
    int64_t* index = indices.mutable_data<int64_t>();
    const auto cost = static_cast<int64_t>(4 * n * std::bit_width(static_cast<uint64_t>(n)));
    parallel_for(values.numel() / k, grain_for(cost), [&](int64_t begin, int64_t end) {
      std::vector<int64_t> order(static_cast<size_t>(n));
      for (int64_t row = begin; row < end; ++row) {
        const T* v = from + row * n;
        const auto less = [&](int64_t i, int64_t j) {
          const Accumulate<T> a = v[i], b = v[j];
          return a < b || (b != b && a == a);
        };
        const auto before = [&](int64_t i, int64_t j) {
          const bool up = less(i, j), down = less(j, i);
          return up == down ? i < j : descending ? down : up;
        };
        std::iota(order.begin(), order.end(), int64_t{0});
        std::partial_sort(order.begin(), order.begin() + k, order.end(), before);
        for (int64_t j = 0; j < k; ++j) {
          index[row * k + j] = order[static_cast<size_t>(j)];
          sorted[row * k + j] = v[order[static_cast<size_t>(j)]];
        }
      }
    });
  });
}

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

}  // namespace

constinit const OrderKernels order_kernels{
    .argmax = argmax,
    .sort = sort,
    .sort_backward = sort_backward,
};

}  // namespace braid::cpu
