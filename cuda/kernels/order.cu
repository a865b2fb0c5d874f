// Kernels that order elements by size.
#include "braid/cuda/runtime/kernel.h"

#include "braid/cuda/device/strided_index.cuh"
#include "braid/tensor/kernels/order.h"

namespace braid::cuda {

namespace {

constexpr int kThreads = 256, kEach = 4;

// Whether element a, at index i, comes before element b, at index j: larger, or equal and first; NaN counts as largest.
// Index -1: no element.
template <class A>
__device__ __forceinline__ bool comes_before(A a, int64_t i, A b, int64_t j) {
  if (i < 0 || j < 0) return j < 0;
  if (a != a || b != b) return b == b || (a != a && i < j);
  return a > b || (a == b && i < j);
}

// A block has kThreads / members rows. A member scans every members-th element; then the members compare in a tree.
template <class T>
__global__ void __launch_bounds__(kThreads)
    argmax_rows(const T* x, Offsets<1> rows, int64_t n, int64_t step, int members, int64_t* index) {
  using A = Accumulate<T>;
  struct Best {
    A value[kThreads];
    int64_t at[kThreads];
  };
  Best& best = shared<Best>();
  const int thread = static_cast<int>(threadIdx.x), member = thread % members;
  const int64_t row = int64_t{blockIdx.x} * (kThreads / members) + thread / members;
  A value = 0;
  int64_t at = -1;
  if (row < rows.count) {
    int64_t place[1];
    rows.at(row, place);
    const T* values = x + place[0];
#pragma unroll 4
    for (int64_t i = member; i < n; i += members) {
      const A v = static_cast<A>(values[i * step]);
      if (at < 0 || v > value || (v != v && value == value)) {
        value = v;
        at = i;
      }
    }
  }
  best.value[thread] = value;
  best.at[thread] = at;
  for (int half = members / 2; half > 0; half /= 2) {
    __syncthreads();
    if (member < half && comes_before(best.value[thread + half], best.at[thread + half], value, at)) {
      best.value[thread] = value = best.value[thread + half];
      best.at[thread] = at = best.at[thread + half];
    }
  }
  if (member == 0 && row < rows.count) index[row] = at;
}

void argmax(In x, Out index) {
  if (index.numel() == 0) return;
  const int64_t n = x.dim(-1);
  Axis<1> axes[Shape::max_rank];
  for (int a = 0; a < x.rank() - 1; ++a) axes[a] = {x.dim(a), {x.strides()[a]}};
  int members = 1;
  while (members < kThreads && int64_t{members} * kEach < n) members *= 2;
  const int64_t blocks = (index.numel() - 1) / (kThreads / members) + 1;
  visit_float(x.dtype(), "argmax", [&]<class T>() {
    launch(argmax_rows<T>, {.grid = static_cast<unsigned>(blocks), .block = kThreads}, x.data<T>(),
           Offsets<1>(axes, x.rank() - 1), n, x.strides()[-1], members, index.mutable_data<int64_t>());
  });
}

}  // namespace

constinit const OrderKernels order_kernels{
    .argmax = argmax,
};

}  // namespace braid::cuda
