// The frame of kernels that compute each element of a result from the same element of some inputs.
//
// A thread has V elements of the result, numbered in row-major order, and does the same for every tensor of the call:
// read() its elements of the inputs into registers, compute, write(). Whatever the layouts are, a formula is compiled
// once for each element type.
#pragma once
#include "braid/cuda/device/strided_index.cuh"
#include "braid/cuda/device/vector_runs.cuh"
#include "braid/tensor/convert.h"

namespace braid::cuda {

inline constexpr int kThreads = 256;

// How a view yields V neighbouring elements that begin at a multiple of V: as one dense, aligned run; all the same; or
// one by one.
enum class Access : unsigned char { dense, repeated, scattered };

struct View {
  void* data;
  Access access;
  Offsets<1> offsets;
};

template <int V>
Access access(const Tensor& x, const Offsets<1>& offsets) {
  const int64_t step = offsets.innermost().stride[0], size = size_of(x.dtype());
  if (offsets.rank > 1 && offsets.innermost().size % V != 0) return Access::scattered;
  if (step == 0) return Access::repeated;
  const int64_t alignment = V * size < 16 ? V * size : 16;
  bool aligned = step == 1 && reinterpret_cast<uintptr_t>(x.raw()) % static_cast<uintptr_t>(alignment) == 0;
  for (int a = 1; a < offsets.rank; ++a) aligned = aligned && offsets.axis(a).stride[0] * size % alignment == 0;
  return aligned ? Access::dense : Access::scattered;
}

template <int V>
View view(const Tensor& x) {
  Offsets<1> o = offsets(x);
  return {const_cast<void*>(x.raw()), access<V>(x, o), o};
}

// Which elements of the result this thread has: V neighbours; or, where the result cannot be written in dense runs,
// V elements a block's width apart, so that the threads of a warp write neighbours.
template <int V>
struct Share {
  int64_t count;
  bool neighbours;

  explicit Share(const View& result) : count(result.offsets.count), neighbours(result.access == Access::dense) {}

  __device__ __forceinline__ int64_t index(int j) const {
    const int64_t first = int64_t{blockIdx.x} * (kThreads * V), thread = threadIdx.x;
    return neighbours ? first + thread * V + j : first + thread + int64_t{kThreads} * j;
  }
  __device__ __forceinline__ bool has(int j) const { return index(j) < count; }
  __device__ __forceinline__ bool empty() const { return !has(0); }
  __device__ __forceinline__ bool whole() const { return neighbours && has(V - 1); }
};

template <int V, class... P, class... A>
void launch_shares(void (*kernel)(Share<V>, P...), const Share<V>& share, A&&... arguments) {
  if (share.count == 0) return;
  const int64_t per_block = int64_t{kThreads} * V;
  launch(kernel, {.grid = static_cast<unsigned>((share.count + per_block - 1) / per_block), .block = kThreads}, share,
         std::forward<A>(arguments)...);
}

// Scattered elements are found a few at a time, for the sake of the registers.
template <int V>
inline constexpr int kTogether = V < 4 ? V : 4;

// The places of the thread's elements first, first + 1, ... in x; its first element stands in for those it has not.
template <int V>
__device__ __forceinline__ void places(const View& x, const Share<V>& share, int first,
                                       int64_t (&place)[kTogether<V>][1]) {
  int64_t index[kTogether<V>];
#pragma unroll
  for (int j = 0; j < kTogether<V>; ++j) index[j] = share.index(share.has(first + j) ? first + j : 0);
  x.offsets.at(index, place);
}

// This thread's elements of x, which holds Ts. Where it has fewer than V, the others repeat its first.
template <class T, class A, int V>
__device__ __forceinline__ void read(const View& x, const Share<V>& share, A (&out)[V]) {
  const T* data = static_cast<const T*>(x.data);
  if (x.access != Access::scattered && share.whole()) {
    int64_t place[1];
    x.offsets.at(share.index(0), place);
    T run[V];
    if (x.access == Access::dense) {
      load(data + place[0], run);
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
    places(x, share, first, place);
#pragma unroll
    for (int j = 0; j < kTogether<V>; ++j) out[first + j] = convert<A>(data[place[j][0]]);
  }
}

template <class T, class A, int V>
__device__ __forceinline__ void write(const View& y, const Share<V>& share, const A (&values)[V]) {
  T* data = static_cast<T*>(y.data);
  T run[V];
#pragma unroll
  for (int j = 0; j < V; ++j) run[j] = convert<T>(values[j]);
  if (share.whole()) {
    int64_t first[1];
    y.offsets.at(share.index(0), first);
    store(data + first[0], run);
    return;
  }
#pragma unroll
  for (int first = 0; first < V; first += kTogether<V>) {
    int64_t place[kTogether<V>][1];
    places(y, share, first, place);
#pragma unroll
    for (int j = 0; j < kTogether<V>; ++j) {
      if (share.has(first + j)) data[place[j][0]] = run[first + j];
    }
  }
}

}  // namespace braid::cuda
