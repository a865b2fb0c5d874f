// expect: naive of .20, 7. and .7, 35., threads from first to last: y.0.: expected 8, found
// A row of b is taken for K long; it has N elements.
#pragma once
#define naive right_naive
#include "tests/course/11_cuda/exercise.h"
#undef naive

namespace exercise {

__global__ inline void naive_wrongly(Global a, Global b, Global c, Sizes z) {
  const int i = place_y(), j = place_x();
  if (i >= z.M || j >= z.N) return;
  float sum = 0;
  for (int k = 0; k < z.K; ++k) sum += a[i * z.K + k] * b[k * z.K + j];
  c[i * z.N + j] = sum;
}
inline void naive(Global a, Global b, Global c, Sizes z) {
  cuda::launch(naive_wrongly, {.grid = dim3(blocks_for(z.N, 16), blocks_for(z.M, 16)), .block = dim3(16, 16)}, a, b, c,
               z);
}

}  // namespace exercise
