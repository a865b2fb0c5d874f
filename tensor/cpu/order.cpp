// Kernels that order elements by size.
#include <algorithm>

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

}  // namespace

constinit const OrderKernels order_kernels{
    .argmax = argmax,
};

}  // namespace braid::cpu
