// The cumulative sum, row by row from one end to the other.
#include "braid/tensor/kernels/scan.h"

#include "braid/tensor/parallel.h"

namespace braid::cpu {

namespace {

void cumsum(In x, bool reverse, Out y) {
  if (y.numel() == 0) return;
  visit_float(x.dtype(), "cumsum", [&]<class T>() {
    const int64_t n = x.dim(-1);
    const T* from = x.data<T>();
    T* to = y.mutable_data<T>();
    parallel_for(y.numel() / n, grain_for(4 * n), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        Accumulate<T> sum = 0;
        for (int64_t i = 0; i < n; ++i) {
          const int64_t at = row * n + (reverse ? n - 1 - i : i);
          sum += Accumulate<T>(from[at]);
          to[at] = T(sum);
        }
      }
    });
  });
}

}  // namespace

constinit const ScanKernels scan_kernels{
    .cumsum = cumsum,
};

}  // namespace braid::cpu
