// Elements ordered by size along the last axis: the first of equals comes first; NaN counts as largest.
#include <algorithm>

#include "braid/cuda/device/kernel.h"

#include "braid/cuda/device/strided_index.cuh"
#include "braid/tensor/kernels/order.h"
#include "braid/tensor/kernels/ordered.h"

namespace braid::cuda {

namespace {

constexpr int kThreads = 256, kEach = 4;

// Whether element a, at index i, comes before element b, at index j: larger (smaller), or equal and first; before all a
// NaN. Index -1: no element.
template <bool smallest, class A>
__device__ __forceinline__ bool comes_before(A a, int64_t i, A b, int64_t j) {
  if (i < 0 || j < 0) return j < 0;
  if (is_nan(a) || is_nan(b)) return !is_nan(b) || (is_nan(a) && i < j);
  return (smallest ? a < b : a > b) || (a == b && i < j);
}

// A block has kThreads / members rows. A member scans every members-th element; then the members compare in a tree.
template <class T, bool smallest>
__global__ void __launch_bounds__(kThreads)
    extreme_rows(const T* x, Offsets<1> rows, int64_t n, int64_t step, int members, int64_t* index) {
  using A = Ordered<T>;
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
      if (at < 0 || (smallest ? v < value : v > value) || (is_nan(v) && !is_nan(value))) {
        value = v;
        at = i;
      }
    }
  }
  best.value[thread] = value;
  best.at[thread] = at;
  for (int half = members / 2; half > 0; half /= 2) {
    __syncthreads();
    if (member < half && comes_before<smallest>(best.value[thread + half], best.at[thread + half], value, at)) {
      best.value[thread] = value = best.value[thread + half];
      best.at[thread] = at = best.at[thread + half];
    }
  }
  if (member == 0 && row < rows.count) index[row] = at;
}

template <bool smallest>
void extreme_index(In x, Out index) {
  if (index.numel() == 0) return;
  const int64_t n = x.dim(-1);
  Axis<1> axes[Shape::max_rank];
  for (int a = 0; a < x.rank() - 1; ++a) axes[a] = {x.dim(a), {x.strides()[a]}};
  int members = 1;
  while (members < kThreads && int64_t{members} * kEach < n) members *= 2;
  const int64_t blocks = (index.numel() - 1) / (kThreads / members) + 1;
  visit_any(x.dtype(), [&]<class T>() {
    launch(extreme_rows<T, smallest>, {.grid = static_cast<unsigned>(blocks), .block = kThreads}, x.data<T>(),
           Offsets<1>(axes, x.rank() - 1), n, x.strides()[-1], members, index.mutable_data<int64_t>());
  });
}

void argmax(In x, Out index) { extreme_index<false>(x, index); }
void argmin(In x, Out index) { extreme_index<true>(x, index); }

// Does element i come before element j of a row? A strict order, so that every sorting network has the same result.
template <class T>
__device__ __forceinline__ bool sorts_before(const T* row, int i, int j, bool descending) {
  using A = Ordered<T>;
  const A a = static_cast<A>(row[i]), b = static_cast<A>(row[j]);
  const bool up = is_less(a, b), down = is_less(b, a);
  return up == down ? i < j : descending ? down : up;
}

// Puts the earlier of two entries at the lower place.
template <class T>
__device__ __forceinline__ void order_pair(const T* row, int* order, int low, int high, bool descending) {
  const int i = order[low], j = order[high];
  if (!sorts_before(row, j, i, descending)) return;
  order[low] = j;
  order[high] = i;
}

constexpr int kMaxSortThreads = 1024;
constexpr int64_t kMaxSortBlocks = int64_t{1} << 30;

// A block sorts a row of n elements, as a list of indices in global memory, by a bitonic network in which every
// comparison puts the earlier entry at the lower place: the first step of each merge compares mirrored places. Places
// from n on count as larger than all, so n may be any number. `half`: half of the power of two that is at least n.
template <class T>
__device__ void sort_row(const T* row, int n, int half, bool descending, int* order, int k, T* values,
                         int64_t* indices) {
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int i = thread; i < n; i += threads) order[i] = i;
  for (int width = 1; width <= half; width *= 2) {  // merges sorted runs of this length in pairs
    __syncthreads();
    for (int p = thread; p < half; p += threads) {
      const int begin = p / width * 2 * width, at = p % width, high = begin + 2 * width - 1 - at;
      if (high < n) order_pair(row, order, begin + at, high, descending);
    }
    for (int distance = width / 2; distance > 0; distance /= 2) {
      __syncthreads();
      for (int p = thread; p < half; p += threads) {
        const int low = p / distance * 2 * distance + p % distance;
        if (low + distance < n) order_pair(row, order, low, low + distance, descending);
      }
    }
  }
  __syncthreads();
  for (int j = thread; j < k; j += threads) {
    indices[j] = order[j];
    values[j] = row[order[j]];
  }
}

// A block has a row, and those gridDim.x rows further.
template <class T>
__global__ void __launch_bounds__(kMaxSortThreads) sort_rows(const T* x, int64_t rows, int n, int half, bool descending,
                                                             int* orders, int k, T* values, int64_t* indices) {
  for (int64_t r = blockIdx.x; r < rows; r += gridDim.x)
    sort_row(x + r * n, n, half, descending, orders + r * n, k, values + r * k, indices + r * k);
}

void sort(In x, bool descending, Out values, Out indices) {
  if (values.numel() == 0) return;
  const int64_t size = x.dim(-1), rows = values.numel() / values.dim(-1);
  check(size <= int64_t{1} << 30, "sort", [&] { return str("the last axis of ", x.shape(), " exceeds 2^30"); });
  const int n = static_cast<int>(size), k = static_cast<int>(values.dim(-1));
  int half = 1;
  while (2 * half < n) half *= 2;
  Tensor orders = empty({rows, size}, DType::i32, x.device());
  visit_any(x.dtype(), [&]<class T>() {
    launch(sort_rows<T>,
           {.grid = static_cast<unsigned>(std::min(rows, kMaxSortBlocks)),
            .block = static_cast<unsigned>(std::clamp(half, 32, kMaxSortThreads))},
           x.data<T>(), rows, n, half, descending, orders.mutable_data<int32_t>(), k, values.mutable_data<T>(),
           indices.mutable_data<int64_t>());
  });
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    scatter_sorted(const T* dvalues, const int64_t* indices, int64_t count, int64_t k, int64_t n, T* dx) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) dx[i / k * n + indices[i]] = dvalues[i];
}

void sort_backward(In dvalues, In indices, Out dx) {
  dx.fill(0);
  const int64_t count = dvalues.numel();
  if (count == 0) return;
  visit_float(dx.dtype(), "sort_backward", [&]<class T>() {
    launch(scatter_sorted<T>, {.grid = static_cast<unsigned>((count - 1) / kThreads + 1), .block = kThreads},
           dvalues.data<T>(), indices.data<int64_t>(), count, dvalues.dim(-1), dx.dim(-1), dx.mutable_data<T>());
  });
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    take_elements(const T* x, const int64_t* indices, int64_t count, int64_t k, int64_t n, T* y) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) y[i] = x[i / k * n + indices[i]];
}

void take(In x, In indices, Out y) {
  const int64_t count = y.numel();
  if (count == 0) return;
  visit_any(x.dtype(), [&]<class T>() {
    launch(take_elements<T>, {.grid = static_cast<unsigned>((count - 1) / kThreads + 1), .block = kThreads},
           x.data<T>(), indices.data<int64_t>(), count, y.dim(-1), x.dim(-1), y.mutable_data<T>());
  });
}

// A thread has one value. pitch: from a row of sorted elements to the next, 0 for one row.
template <class T>
__global__ void __launch_bounds__(kThreads) search_rows(const T* sorted, int64_t n, int64_t pitch, const T* values,
                                                        int64_t count, int64_t m, bool right, int64_t* index) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const T* row = sorted + i / m * pitch;
  index[i] = count_below(row, n, static_cast<Ordered<T>>(values[i]), right);
}

void search(In sorted, In values, bool right, Out index) {
  const int64_t count = index.numel(), n = sorted.dim(-1), m = values.rank() > 0 ? values.dim(-1) : 1;
  if (count == 0) return;
  visit_any(values.dtype(), [&]<class T>() {
    launch(search_rows<T>, {.grid = static_cast<unsigned>((count - 1) / kThreads + 1), .block = kThreads},
           sorted.data<T>(), n, sorted.rank() == 1 ? int64_t{0} : n, values.data<T>(), count, m, right,
           index.mutable_data<int64_t>());
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

}  // namespace braid::cuda
