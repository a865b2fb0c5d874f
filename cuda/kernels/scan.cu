// The cumulative sum: a block has one row and passes over it in tiles of one element per thread.
//
//   tile   x_0 .. x_255   -> inclusive sums, each step adding the element 1, 2, 4, ... places before (Hillis, Steele
//   1986) carry  the sum of all tiles before, added to each element
#include "braid/cuda/device/kernel.h"

#include "braid/tensor/kernels/scan.h"

namespace braid::cuda {

namespace {

constexpr int kThreads = 256;

template <class T>
__global__ void __launch_bounds__(kThreads) cumsum_rows(const T* x, int64_t n, bool reverse, T* y) {
  using A = Accumulate<T>;
  struct Tile {
    A sum[2][kThreads];  // read one, write the other
  };
  Tile& tile = shared<Tile>();
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t row = int64_t{blockIdx.x} * n;
  A carry = 0;
  for (int64_t begin = 0; begin < n; begin += kThreads) {
    const int64_t i = begin + thread, at = row + (reverse ? n - 1 - i : i);
    int now = 0;
    tile.sum[now][thread] = i < n ? A(x[at]) : A(0);
    __syncthreads();
    for (int step = 1; step < kThreads; step *= 2) {
      const A before = thread >= step ? tile.sum[now][thread - step] : A(0);
      tile.sum[1 - now][thread] = tile.sum[now][thread] + before;
      now = 1 - now;
      __syncthreads();
    }
    if (i < n) y[at] = T(carry + tile.sum[now][thread]);
    carry += tile.sum[now][kThreads - 1];
    __syncthreads();
  }
}

void cumsum(In x, bool reverse, Out y) {
  if (y.numel() == 0) return;
  const int64_t n = x.dim(-1);
  visit_float(x.dtype(), "cumsum", [&]<class T>() {
    launch(cumsum_rows<T>, {.grid = static_cast<unsigned>(y.numel() / n), .block = kThreads}, x.data<T>(), n, reverse,
           y.mutable_data<T>());
  });
}

}  // namespace

constinit const ScanKernels scan_kernels{
    .cumsum = cumsum,
};

}  // namespace braid::cuda
