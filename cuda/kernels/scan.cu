// Scans. For sums and extremes a block has a row, and those gridDim.x rows further, and passes over it in tiles of one
// element per thread.
//
//   tile   x_0 .. x_255   -> inclusive sums, each step adding the element 1, 2, 4, ... places before (Hillis, Steele
//   1986) carry  the sum of all tiles before, added to each element
//
// A linear recurrence is not scanned so: the product of neighbouring factors may overflow where the recurrence, whose
// state is 0 there, does not. A thread has one row.
#include "braid/cuda/device/kernel.h"

#include "braid/tensor/convert.h"
#include "braid/tensor/kernels/ordered.h"
#include "braid/tensor/kernels/scan.h"

namespace braid::cuda {

namespace {

constexpr int kThreads = 256;

constexpr int64_t kMaxBlocks = int64_t{1} << 30;
unsigned blocks_for(int64_t rows) { return static_cast<unsigned>(rows < kMaxBlocks ? rows : kMaxBlocks); }

template <class T>
__global__ void __launch_bounds__(kThreads)
    cumsum_rows(const T* x, int64_t rows, int64_t n, bool reverse, Stored<T>* y) {
  using A = RunningTotal<T>;
  struct Tile {
    A sum[2][kThreads];  // read one, write the other
  };
  Tile& tile = shared<Tile>();
  const int thread = static_cast<int>(threadIdx.x);
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    A carry = 0;
    for (int64_t begin = 0; begin < n; begin += kThreads) {
      const int64_t i = begin + thread, at = r * n + (reverse ? n - 1 - i : i);
      int now = 0;
      tile.sum[now][thread] = i < n ? A(static_cast<Total<T>>(x[at])) : A(0);
      __syncthreads();
      for (int step = 1; step < kThreads; step *= 2) {
        const A before = thread >= step ? tile.sum[now][thread - step] : A(0);
        tile.sum[1 - now][thread] = tile.sum[now][thread] + before;
        now = 1 - now;
        __syncthreads();
      }
      if (i < n) y[at] = convert<Stored<T>>(carry + tile.sum[now][thread]);
      carry += tile.sum[now][kThreads - 1];
      __syncthreads();
    }
  }
}

void cumsum(In x, bool reverse, Out y) {
  if (y.numel() == 0) return;
  const int64_t n = x.dim(-1);
  visit_any(x.dtype(), [&]<class T>() {
    const int64_t rows = y.numel() / n;
    launch(cumsum_rows<T>, {.grid = blocks_for(rows), .block = kThreads}, x.data<T>(), rows, n, reverse,
           y.mutable_data<Stored<T>>());
  });
}

// Whether the element at index j, after i, is the extreme of both; -1: no element.
template <class A>
__device__ __forceinline__ bool takes_over(A a, int64_t i, A b, int64_t j, bool smallest) {
  if (i < 0 || j < 0) return i < 0;
  return !is_nan(a) && ((smallest ? b < a : b > a) || is_nan(b));
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    cummax_rows(const T* x, int64_t rows, int64_t n, bool smallest, T* values, int64_t* indices) {
  using A = Ordered<T>;
  struct Tile {
    A value[2][kThreads];
    int64_t at[2][kThreads];
  };
  Tile& tile = shared<Tile>();
  const int thread = static_cast<int>(threadIdx.x);
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const int64_t row = r * n;
    A best = 0;
    int64_t best_at = -1;  // of the tiles before
    for (int64_t begin = 0; begin < n; begin += kThreads) {
      const int64_t i = begin + thread;
      int now = 0;
      A value = i < n ? static_cast<A>(x[row + i]) : A(0);
      int64_t at = i < n ? i : -1;
      tile.value[now][thread] = value;
      tile.at[now][thread] = at;
      __syncthreads();
      for (int step = 1; step < kThreads; step *= 2) {
        if (thread >= step) {
          const A before = tile.value[now][thread - step];
          const int64_t before_at = tile.at[now][thread - step];
          if (!takes_over(before, before_at, value, at, smallest)) {
            value = before;
            at = before_at;
          }
        }
        now = 1 - now;
        tile.value[now][thread] = value;
        tile.at[now][thread] = at;
        __syncthreads();
      }
      if (!takes_over(best, best_at, value, at, smallest)) {
        value = best;
        at = best_at;
      }
      if (i < n) {
        values[row + i] = x[row + at];
        indices[row + i] = at;
      }
      const A last = tile.value[now][kThreads - 1];
      const int64_t last_at = tile.at[now][kThreads - 1];
      if (takes_over(best, best_at, last, last_at, smallest)) {
        best = last;
        best_at = last_at;
      }
      __syncthreads();
    }
  }
}

void cummax(In x, bool smallest, Out values, Out indices) {
  if (x.numel() == 0) return;
  const int64_t n = x.dim(-1);
  visit_any(x.dtype(), [&]<class T>() {
    const int64_t rows = x.numel() / n;
    launch(cummax_rows<T>, {.grid = blocks_for(rows), .block = kThreads}, x.data<T>(), rows, n, smallest,
           values.mutable_data<T>(), indices.mutable_data<int64_t>());
  });
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    recurrence_rows(const T* a, const T* b, int64_t rows, int64_t n, bool reverse, T* y) {
  using A = Accumulate<T>;
  const int64_t row = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= rows) return;
  const int64_t step = reverse ? -1 : 1;
  int64_t at = row * n + (reverse ? n - 1 : 0);
  A state = A(b[at]);
  y[at] = T(state);
  for (int64_t i = 1; i < n; ++i) {
    at += step;
    state = A(a[at]) * state + A(b[at]);
    y[at] = T(state);
  }
}

void recurrence(In a, In b, bool reverse, Out y) {
  if (y.numel() == 0) return;
  const int64_t n = y.dim(-1), rows = y.numel() / n;
  visit_float(y.dtype(), "recurrence", [&]<class T>() {
    launch(recurrence_rows<T>, {.grid = static_cast<unsigned>((rows - 1) / kThreads + 1), .block = kThreads},
           a.data<T>(), b.data<T>(), rows, n, reverse, y.mutable_data<T>());
  });
}

}  // namespace

constinit const ScanKernels scan_kernels{
    .cumsum = cumsum,
    .cummax = cummax,
    .recurrence = recurrence,
};

}  // namespace braid::cuda
