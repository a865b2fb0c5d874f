// The frame of kernels that compute each element of the result from the same element of each input.
//
// A thread has V elements of the result, numbered in row-major order: it calls load() for each input, computes in
// registers, and calls store(). A formula is compiled for each element type, once for all layouts; the most frequent
// formulas once more for dense operands, by the same kernel.
#pragma once
#include "braid/cuda/device/strided_index.cuh"
#include "braid/cuda/device/vector_io.cuh"
#include "braid/tensor/convert.h"

namespace braid::cuda {

inline constexpr int kThreads = 256;

// How V neighbouring elements that begin at a multiple of V lie in memory: as one aligned vector, as one repeated
// element, or apart.
enum class Access : unsigned char { contiguous, broadcast, strided };

struct Operand {
  void* data;
  Access access;
  Offsets<1> offsets;
};

template <int V>
Access access(const Tensor& x, const Offsets<1>& offsets) {
  const int64_t step = offsets.innermost().stride[0], size = size_of(x.dtype());
  if (offsets.rank > 1 && offsets.innermost().size % V != 0) return Access::strided;
  if (step == 0) return Access::broadcast;
  const int64_t alignment = V * size < 16 ? V * size : 16;
  bool aligned = step == 1 && reinterpret_cast<uintptr_t>(x.raw()) % static_cast<uintptr_t>(alignment) == 0;
  for (int a = 1; a < offsets.rank; ++a) aligned = aligned && offsets.axis(a).stride[0] * size % alignment == 0;
  return aligned ? Access::contiguous : Access::strided;
}

template <int V>
Operand operand(const Tensor& x) {
  Offsets<1> o = offsets(x);
  return {const_cast<void*>(x.raw()), access<V>(x, o), o};
}

// The elements of the result that this thread computes: V neighbours; or, where the result is strided, V elements a
// block's width apart, so that the threads of a warp write neighbours.
template <int V>
struct ElementRange {
  int64_t count;
  bool neighbours;

  explicit ElementRange(const Operand& result)
      : count(result.offsets.count), neighbours(result.access == Access::contiguous) {}

  __device__ __forceinline__ int64_t index(int j) const {
    const int64_t first = int64_t{blockIdx.x} * (kThreads * V), thread = threadIdx.x;
    return neighbours ? first + thread * V + j : first + thread + int64_t{kThreads} * j;
  }
  __device__ __forceinline__ bool has(int j) const { return index(j) < count; }
  __device__ __forceinline__ bool empty() const { return !has(0); }
  __device__ __forceinline__ bool whole() const { return neighbours && has(V - 1); }
};

// Where each operand is contiguous or a slice of a matrix's columns, in rows of one length, threads need no strided
// offsets: blocks then use half the registers, so that twice as many loads are in flight.
struct DenseRange {
  int64_t count, length;  // elements, 0 where it is not so; of a row
};
template <class T>
struct DenseOperand {
  T* data;
  int64_t pitch;  // from one row to the next
};

template <int V, class... Operands>
DenseRange dense_range(const ElementRange<V>& range, const Operands&... operands) {
  int64_t length = range.count;
  bool fits = range.neighbours && range.count % V == 0;
  const auto take = [&](const Operand& o) {
    fits = fits && o.access == Access::contiguous && o.offsets.rank <= 2;
    if (o.offsets.rank != 2) return;
    fits = fits && (length == range.count || length == o.offsets.innermost().size);
    length = o.offsets.innermost().size;
  };
  (take(operands), ...);
  return {fits ? range.count : 0, length};
}
template <class T>
DenseOperand<T> dense(const Operand& o, const DenseRange& range) {
  return {static_cast<T*>(o.data), o.offsets.rank == 2 ? o.offsets.axis(1).stride[0] : range.length};
}

// The calling thread's V neighbours.
template <int V>
class DensePlace {
 public:
  __device__ __forceinline__ explicit DensePlace(const DenseRange& range)
      : row_(0), column_((int64_t{blockIdx.x} * kThreads + threadIdx.x) * V), exists_(column_ < range.count) {
    if (range.length == range.count) return;
    row_ = quotient(column_, range.length);
    column_ -= row_ * range.length;
  }
  __device__ __forceinline__ bool empty() const { return !exists_; }
  template <class T>
  __device__ __forceinline__ T* of(const DenseOperand<T>& x) const {
    return x.data + row_ * x.pitch + column_;
  }

 private:
  int64_t row_, column_;
  bool exists_;
};

// Where a thread's V elements are, for load() and store().
template <int V>
__device__ __forceinline__ DensePlace<V> place_of(const DenseRange& range) {
  return DensePlace<V>(range);
}
template <int V>
__device__ __forceinline__ const ElementRange<V>& place_of(const ElementRange<V>& range) {
  return range;
}

template <int V, class... P, class... A>
void launch_dense(void (*kernel)(DenseRange, P...), const DenseRange& range, A&&... arguments) {
  launch(kernel, {.grid = static_cast<unsigned>((range.count / V + kThreads - 1) / kThreads), .block = kThreads}, range,
         std::forward<A>(arguments)...);
}

template <int V, class... P, class... A>
void launch_elements(void (*kernel)(ElementRange<V>, P...), const ElementRange<V>& range, A&&... arguments) {
  if (range.count == 0) return;
  const int64_t per_block = int64_t{kThreads} * V;
  launch(kernel, {.grid = static_cast<unsigned>((range.count + per_block - 1) / per_block), .block = kThreads}, range,
         std::forward<A>(arguments)...);
}

// Offsets of strided elements are computed a few at a time, to save registers.
template <int V>
inline constexpr int kTogether = V < 4 ? V : 4;

// The offsets in x of the thread's elements first, first + 1, ...; elements beyond the end take the offset of its
// first.
template <int V>
__device__ __forceinline__ void places(const Operand& x, const ElementRange<V>& range, int first,
                                       int64_t (&place)[kTogether<V>][1]) {
  int64_t index[kTogether<V>];
#pragma unroll
  for (int j = 0; j < kTogether<V>; ++j) index[j] = range.index(range.has(first + j) ? first + j : 0);
  x.offsets.at(index, place);
}

// This thread's elements of x, whose element type is T. Elements beyond the end repeat its first.
template <class T, class A, int V>
__device__ __forceinline__ void load(const Operand& x, const ElementRange<V>& range, A (&out)[V]) {
  const T* data = static_cast<const T*>(x.data);
  if (x.access != Access::strided && range.whole()) {
    int64_t place[1];
    x.offsets.at(range.index(0), place);
    T run[V];
    if (x.access == Access::contiguous) {
      load_vector(data + place[0], run);
    } else {
      const T same = data[place[0]];
#pragma unroll
      for (int j = 0; j < V; ++j) run[j] = same;
    }
#pragma unroll
    for (int j = 0; j < V; ++j) out[j] = convert<A>(run[j]);
    return;
  }
#pragma unroll
  for (int first = 0; first < V; first += kTogether<V>) {
    int64_t place[kTogether<V>][1];
    places(x, range, first, place);
#pragma unroll
    for (int j = 0; j < kTogether<V>; ++j) out[first + j] = convert<A>(data[place[j][0]]);
  }
}

template <class T, class A, int V>
__device__ __forceinline__ void load(const DenseOperand<T>& x, const DensePlace<V>& at, A (&out)[V]) {
  T run[V];
  load_vector(at.of(x), run);
#pragma unroll
  for (int j = 0; j < V; ++j) out[j] = convert<A>(run[j]);
}

template <class T, class A, int V>
__device__ __forceinline__ void store(const DenseOperand<T>& y, const DensePlace<V>& at, const A (&values)[V]) {
  T run[V];
#pragma unroll
  for (int j = 0; j < V; ++j) run[j] = convert<T>(values[j]);
  store_vector(at.of(y), run);
}

template <class T, class A, int V>
__device__ __forceinline__ void store(const Operand& y, const ElementRange<V>& range, const A (&values)[V]) {
  T* data = static_cast<T*>(y.data);
  T run[V];
#pragma unroll
  for (int j = 0; j < V; ++j) run[j] = convert<T>(values[j]);
  if (range.whole()) {
    int64_t first[1];
    y.offsets.at(range.index(0), first);
    store_vector(data + first[0], run);
    return;
  }
#pragma unroll
  for (int first = 0; first < V; first += kTogether<V>) {
    int64_t place[kTogether<V>][1];
    places(y, range, first, place);
#pragma unroll
    for (int j = 0; j < kTogether<V>; ++j) {
      if (range.has(first + j)) data[place[j][0]] = run[first + j];
    }
  }
}

}  // namespace braid::cuda
