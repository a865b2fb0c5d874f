#include "braid/tensor/kernels/math_functions.h"

#include "braid/cuda/device/kernel.h"
#include "braid/tensor/kernels/math_formulas.h"

namespace braid::cuda {

namespace {

constexpr int kThreads = 256;

template <MathOp op, class T>
__global__ void __launch_bounds__(kThreads) math_values(const T* x, int64_t n, T* y) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n) y[i] = T(math_functions::value<op>(Accumulate<T>(x[i])));
}

template <MathOp2 op, class T>
__global__ void __launch_bounds__(kThreads) math_values_of_two(const T* x, const T* y, int64_t n, T* z) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < n) z[i] = T(math_functions::value<op>(Accumulate<T>(x[i]), Accumulate<T>(y[i])));
}

unsigned blocks(int64_t n) { return static_cast<unsigned>((n + kThreads - 1) / kThreads); }

void math_unary(MathOp op, In x, Out y) {
  if (y.numel() == 0) return;
  visit_float(x.dtype(), "math", [&]<class T>() {
    math_functions::visit(op, [&]<MathOp o>() {
      launch(math_values<o, T>, {.grid = blocks(y.numel()), .block = kThreads}, x.data<T>(), y.numel(),
             y.mutable_data<T>());
    });
  });
}

void math_binary(MathOp2 op, In x, In y, Out z) {
  if (z.numel() == 0) return;
  visit_float(x.dtype(), "math_of_two", [&]<class T>() {
    math_functions::visit(op, [&]<MathOp2 o>() {
      launch(math_values_of_two<o, T>, {.grid = blocks(z.numel()), .block = kThreads}, x.data<T>(), y.data<T>(),
             z.numel(), z.mutable_data<T>());
    });
  });
}

}  // namespace

constinit const MathKernels math_kernels{
    .unary = math_unary,
    .binary = math_binary,
};

}  // namespace braid::cuda
