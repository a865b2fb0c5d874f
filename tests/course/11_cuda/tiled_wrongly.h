// Exercise 11 with tiled() in the ways that the wrong solutions choose.
#pragma once
#define tiled right_tiled
#include "tests/course/11_cuda/exercise.h"
#undef tiled

#ifndef TILES_BEGIN
#define TILES_BEGIN
#endif

namespace exercise {

__global__ inline void tiled_wrongly(Global a, Global b, Global c, Sizes z) {
  struct Memory {
    Shared<256> a, b;
  };
  Memory& tile = cuda::shared<Memory>();
  const int row = static_cast<int>(threadIdx.y), column = static_cast<int>(threadIdx.x);
  const int i = place_y(), j = place_x();
  TILES_BEGIN;
  float sum = 0;
  for (int k0 = 0; k0 < z.K; k0 += 16) {
    const int ka = k0 + column, kb = k0 + row;
    tile.a[row * 16 + column] = i < z.M && ka < z.K ? a[i * z.K + ka] : 0.0f;
    tile.b[row * 16 + column] = kb < z.K && j < z.N ? b[kb * z.N + j] : 0.0f;
    TILES_COMPLETE;
    for (int k = 0; k < 16; ++k) sum += tile.a[row * 16 + k] * tile.b[k * 16 + column];
    TILES_READ;
  }
  if (i < z.M && j < z.N) c[i * z.N + j] = sum;
}
inline void tiled(Global a, Global b, Global c, Sizes z) {
  cuda::launch(tiled_wrongly, {.grid = dim3(blocks_for(z.N, 16), blocks_for(z.M, 16)), .block = dim3(16, 16)}, a, b, c,
               z);
}

}  // namespace exercise
