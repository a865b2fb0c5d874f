// Exercise 11: kernels, from one thread per element to tensor cores, for the emulated GPU.
//
//   blockIdx.x .y, threadIdx.x .y, blockDim.x .y     which thread this is; unsigned, so cast them to int
//   Global x                                         an array in the GPU's memory: x[i] reads, x[i] = v writes
//   struct Memory { Shared<256> tile; };             256 floats of shared memory: declare it in the kernel, then
//   Memory& memory = cuda::shared<Memory>();         the same memory in every thread of the block
//   __syncthreads()                                  waits for all threads of the block
//   __shfl_xor_sync(~0u, v, bits)                    v of the lane whose number differs in these bits; a warp together
//   cuda::launch(kernel, {.grid = dim3(3, 2), .block = 256}, arguments...)
//
// Each function below launches a kernel that you write above it.
#pragma once
#include "course/11_cuda/gpu.h"
#include "course/checks.h"

namespace exercise {

using namespace course;

// y[i] = factor x[i] for i < n, a thread each, in blocks of 128. n need not be a multiple of 128.
inline void scale(float factor, Global x, Global y, int n) { throw course::NotWritten("scale()"); }

// C = A B, one thread per element of c, in blocks of 16 x 16 threads. Any sizes.
inline void naive(Global a, Global b, Global c, Sizes z) { throw course::NotWritten("naive()"); }

// The sum of x over the 32 lanes of the warp, in every lane, by five shuffles.
__device__ inline float warp_sum(float x) { throw course::NotWritten("warp_sum()"); }

// y[r] = the sum of the row r of x (rows, columns). A block of 128 threads per row: each thread adds every 128th
// element, warp_sum() adds those of a warp, and shared memory brings the four warps together.
inline void row_sums(Global x, Global y, int rows, int columns) { throw course::NotWritten("row_sums()"); }

// C = A B by blocks of 16 x 16 threads, each of which owns a tile of c and walks along k in steps of 16. In each step
// the block copies a tile of a and a tile of b to shared memory, one element of each by every thread, and multiplies
// from there. Any sizes: outside of a matrix a tile is 0, and nothing outside is read or written.
inline void tiled(Global a, Global b, Global c, Sizes z) { throw course::NotWritten("tiled()"); }

// C = A B by tensor cores: a block of 32 threads, one warp, per tile of c of 16 x 8, which walks along k in steps of 16
// with cuda::mma_bf16(c, a, b0, b1): float c[4], uint32_t a[4], b0, b1, each of a and b a pair of bf16 made by
// cuda::pack_bf16(low, high). Lane l has, with g = l / 4 and t = l % 4 (the chapter's figure),
//   a[0], a[1]   columns 2t and 2t + 1 of rows g and g + 8         a[2], a[3]   columns 2t + 8, 2t + 9 of the same rows
//   b0, b1       rows 2t, 2t + 1 and rows 2t + 8, 2t + 9 of column g
//   c[0], c[1]   columns 2t and 2t + 1 of row g                    c[2], c[3]   of row g + 8
// M is a multiple of 16, N of 8, K of 16.
inline void tensor_cores(Global a, Global b, Global c, Sizes z) { throw course::NotWritten("tensor_cores()"); }

}  // namespace exercise
