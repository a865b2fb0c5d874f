// expect: block .0,0,0. cannot continue:[^.]*threads 0 wait in __shfl_xor_sync .*threads 1-127 wait in __syncthreads
// Threads without an element leave out the shuffles, and the others wait for them.
#pragma once
#define row_sums right_row_sums
#include "tests/course/11_cuda/exercise.h"
#undef row_sums

namespace exercise {

__global__ inline void row_sums_wrongly(Global x, Global y, int columns) {
  struct Memory {
    Shared<4> sums;
  };
  Memory& memory = cuda::shared<Memory>();
  const int row = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  float sum = 0;
  for (int j = thread; j < columns; j += 128) sum += x[row * columns + j];
  if (thread < columns) sum = warp_sum(sum);
  if (thread % 32 == 0) memory.sums[thread / 32] = sum;
  __syncthreads();
  if (thread == 0) y[row] = memory.sums[0] + memory.sums[1] + memory.sums[2] + memory.sums[3];
}
inline void row_sums(Global x, Global y, int rows, int columns) {
  cuda::launch(row_sums_wrongly, {.grid = static_cast<unsigned>(rows), .block = 128}, x, y, columns);
}

}  // namespace exercise
