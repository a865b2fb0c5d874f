// Sums and maxima over the threads of a warp or a block, in an order that is always the same. All threads of
// the warp or block must call; all get the result.
#pragma once
#include "braid/cuda/device/kernel.h"

namespace braid::cuda {

// The larger one; NaN wins.
template <class A>
__device__ A larger(A a, A b) {
  return b > a || b != b ? b : a;
}

// Combines x over groups of `lanes` neighbouring lanes: 1, 2, 4, ... 32.
template <class A, class F>
__device__ A lanes_combine(A x, int lanes, F f) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    if (distance < lanes) x = f(x, __shfl_xor_sync(~0u, x, distance));
  }
  return x;
}
template <class A>
__device__ A lanes_sum(A x, int lanes) {
  return lanes_combine(x, lanes, [](A a, A b) { return a + b; });
}
template <class A>
__device__ A lanes_max(A x, int lanes) {
  return lanes_combine(x, lanes, [](A a, A b) { return larger(a, b); });
}
template <class A>
__device__ A warp_sum(A x) {
  return lanes_sum(x, 32);
}
template <class A>
__device__ A warp_max(A x) {
  return lanes_max(x, 32);
}

// Over a block of one dimension and a multiple of 32 threads; Threads is its size where it is a constant.
// nothing: the neutral element of f.
template <int Threads = 0, class A, class F>
__device__ A block_combine(A x, A nothing, F f) {
  struct Warps {
    A value[32];
  };
  Warps& of_warp = shared<Warps>();
  int warps = (Threads > 0 ? Threads : static_cast<int>(blockDim.x)) / 32;
  int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  x = lanes_combine(x, 32, f);
  if (lane == 0) of_warp.value[warp] = x;
  __syncthreads();
  x = lanes_combine(lane < warps ? of_warp.value[lane] : nothing, 32, f);
  __syncthreads();  // the next call may write of_warp
  return x;
}
template <int Threads = 0, class A>
__device__ A block_sum(A x) {
  return block_combine<Threads>(x, A(0), [](A a, A b) { return a + b; });
}
template <int Threads = 0, class A>
__device__ A block_max(A x) {  // a maximum may count x twice, so x is its own nothing
  return block_combine<Threads>(x, x, [](A a, A b) { return larger(a, b); });
}

}  // namespace braid::cuda
