// A solution of exercise 11.
#pragma once
#include "course/11_cuda/gpu.h"
#include "course/checks.h"

namespace exercise {

using namespace course;

__device__ inline int place_x() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }
__device__ inline int place_y() { return static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y); }
inline unsigned blocks_for(int n, int size) { return static_cast<unsigned>((n + size - 1) / size); }

__global__ inline void scale_kernel(float factor, Global x, Global y, int n) {
  const int i = place_x();
  if (i < n) y[i] = factor * x[i];
}
inline void scale(float factor, Global x, Global y, int n) {
  cuda::launch(scale_kernel, {.grid = blocks_for(n, 128), .block = 128}, factor, x, y, n);
}

__global__ inline void naive_kernel(Global a, Global b, Global c, Sizes z) {
  const int i = place_y(), j = place_x();
  if (i >= z.M || j >= z.N) return;
  float sum = 0;
  for (int k = 0; k < z.K; ++k) sum += a[i * z.K + k] * b[k * z.N + j];
  c[i * z.N + j] = sum;
}
inline void naive(Global a, Global b, Global c, Sizes z) {
  cuda::launch(naive_kernel, {.grid = dim3(blocks_for(z.N, 16), blocks_for(z.M, 16)), .block = dim3(16, 16)}, a, b, c,
               z);
}

__device__ inline float warp_sum(float x) {
  for (int bits = 16; bits > 0; bits /= 2) x += __shfl_xor_sync(~0u, x, bits);
  return x;
}

__global__ inline void row_sums_kernel(Global x, Global y, int columns) {
  struct Memory {
    Shared<4> sums;
  };
  Memory& memory = cuda::shared<Memory>();
  const int row = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  float sum = 0;
  for (int j = thread; j < columns; j += 128) sum += x[row * columns + j];
  sum = warp_sum(sum);
  if (thread % 32 == 0) memory.sums[thread / 32] = sum;
  __syncthreads();
  if (thread == 0) y[row] = memory.sums[0] + memory.sums[1] + memory.sums[2] + memory.sums[3];
}
inline void row_sums(Global x, Global y, int rows, int columns) {
  cuda::launch(row_sums_kernel, {.grid = static_cast<unsigned>(rows), .block = 128}, x, y, columns);
}

__global__ inline void tiled_kernel(Global a, Global b, Global c, Sizes z) {
  struct Memory {
    Shared<256> a, b;
  };
  Memory& tile = cuda::shared<Memory>();
  const int row = static_cast<int>(threadIdx.y), column = static_cast<int>(threadIdx.x);
  const int i = place_y(), j = place_x();
  float sum = 0;
  for (int k0 = 0; k0 < z.K; k0 += 16) {
    const int ka = k0 + column, kb = k0 + row;
    tile.a[row * 16 + column] = i < z.M && ka < z.K ? a[i * z.K + ka] : 0.0f;
    tile.b[row * 16 + column] = kb < z.K && j < z.N ? b[kb * z.N + j] : 0.0f;
    __syncthreads();  // the tiles are complete
    for (int k = 0; k < 16; ++k) sum += tile.a[row * 16 + k] * tile.b[k * 16 + column];
    __syncthreads();  // the tiles are read
  }
  if (i < z.M && j < z.N) c[i * z.N + j] = sum;
}
inline void tiled(Global a, Global b, Global c, Sizes z) {
  cuda::launch(tiled_kernel, {.grid = dim3(blocks_for(z.N, 16), blocks_for(z.M, 16)), .block = dim3(16, 16)}, a, b, c,
               z);
}

__global__ inline void tensor_cores_kernel(Global a, Global b, Global c, Sizes z) {
  const int lane = static_cast<int>(threadIdx.x), g = lane / 4, t = lane % 4;
  const int i0 = static_cast<int>(blockIdx.y) * 16, j0 = static_cast<int>(blockIdx.x) * 8;
  float sum[4] = {};
  for (int k0 = 0; k0 < z.K; k0 += 16) {
    const auto pair_a = [&](int i, int k) {
      return cuda::pack_bf16(a[(i0 + i) * z.K + k0 + k], a[(i0 + i) * z.K + k0 + k + 1]);
    };
    const auto pair_b = [&](int k) {
      return cuda::pack_bf16(b[(k0 + k) * z.N + j0 + g], b[(k0 + k + 1) * z.N + j0 + g]);
    };
    const uint32_t left[4] = {pair_a(g, 2 * t), pair_a(g + 8, 2 * t), pair_a(g, 2 * t + 8), pair_a(g + 8, 2 * t + 8)};
    cuda::mma_bf16(sum, left, pair_b(2 * t), pair_b(2 * t + 8));
  }
  for (int r = 0; r < 4; ++r) c[(i0 + g + 8 * (r / 2)) * z.N + j0 + 2 * t + r % 2] = sum[r];
}
inline void tensor_cores(Global a, Global b, Global c, Sizes z) {
  cuda::launch(tensor_cores_kernel,
               {.grid = dim3(static_cast<unsigned>(z.N / 8), static_cast<unsigned>(z.M / 16)), .block = 32}, a, b, c,
               z);
}

}  // namespace exercise
