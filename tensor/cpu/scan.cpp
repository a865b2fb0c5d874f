// Scans, row by row from one end to the other.
#include "braid/tensor/kernels/scan.h"

#include "braid/tensor/convert.h"
#include "braid/tensor/kernels/ordered.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {

namespace {

void cumsum(In x, bool reverse, Out y) {
  if (y.numel() == 0) return;
  visit_any(x.dtype(), [&]<class T>() {
    using R = Stored<T>;
    const int64_t n = x.dim(-1);
    const T* from = x.data<T>();
    R* to = y.mutable_data<R>();
    parallel_for(y.numel() / n, grain_for(4 * n), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        RunningTotal<T> sum = 0;
        for (int64_t i = 0; i < n; ++i) {
          const int64_t at = row * n + (reverse ? n - 1 - i : i);
          sum += static_cast<RunningTotal<T>>(from[at]);
          to[at] = convert<R>(sum);
        }
      }
    });
  });
}

void cummax(In x, bool smallest, Out values, Out indices) {
  if (x.numel() == 0) return;
  visit_any(x.dtype(), [&]<class T>() {
    using A = Ordered<T>;
    const int64_t n = x.dim(-1);
    const T* from = x.data<T>();
    T* to = values.mutable_data<T>();
    int64_t* index = indices.mutable_data<int64_t>();
    parallel_for(x.numel() / n, grain_for(4 * n), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t best = 0;
        for (int64_t i = 0; i < n; ++i) {
          const A now = static_cast<A>(from[row * n + best]), v = static_cast<A>(from[row * n + i]);
          if (!is_nan(now) && ((smallest ? v < now : v > now) || is_nan(v))) best = i;
          to[row * n + i] = from[row * n + best];
          index[row * n + i] = best;
        }
      }
    });
  });
}

void recurrence(In a, In b, bool reverse, Out y) {
  if (y.numel() == 0) return;
  visit_float(y.dtype(), "recurrence", [&]<class T>() {
    using A = Accumulate<T>;
    const int64_t n = y.dim(-1);
    const T *factor = a.data<T>(), *term = b.data<T>();
    T* to = y.mutable_data<T>();
    parallel_for(y.numel() / n, grain_for(6 * n), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t first = row * n + (reverse ? n - 1 : 0), step = reverse ? -1 : 1;
        A state = A(term[first]);
        to[first] = T(state);
        for (int64_t i = 1, at = first + step; i < n; ++i, at += step) {
          state = A(factor[at]) * state + A(term[at]);
          to[at] = T(state);
        }
      }
    });
  });
}

}  // namespace

constinit const ScanKernels scan_kernels{
    .cumsum = cumsum,
    .cummax = cummax,
    .recurrence = recurrence,
};

}  // namespace braid::cpu
