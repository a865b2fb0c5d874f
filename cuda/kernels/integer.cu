#include "braid/tensor/kernels/integer.h"

#include "braid/cuda/device/kernel.h"

namespace braid::cuda {

namespace {

constexpr int kIntegerThreads = 256;

template <IntegerOp op, class T>
__global__ void __launch_bounds__(kIntegerThreads) integer_values(const T* x, const T* y, int64_t n, T* z) {
  const int64_t i = int64_t{blockIdx.x} * kIntegerThreads + threadIdx.x;
  if (i < n) z[i] = integer::value<op>(x[i], y[i]);
}

void integer_binary(IntegerOp op, In x, In y, Out z) {
  const int64_t n = z.numel();
  if (n == 0) return;
  const auto blocks = static_cast<unsigned>((n + kIntegerThreads - 1) / kIntegerThreads);
  integer::visit_type(x.dtype(), "integer", [&]<class T>() {
    integer::visit(op, [&]<IntegerOp o>() {
      launch(integer_values<o, T>, {.grid = blocks, .block = kIntegerThreads}, x.data<T>(), y.data<T>(), n,
             z.mutable_data<T>());
    });
  });
}

}  // namespace

constinit const IntegerKernels integer_kernels{.binary = integer_binary};

}  // namespace braid::cuda
