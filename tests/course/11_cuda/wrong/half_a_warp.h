// expect: warp_sum of lanes 0 to 31, threads from first to last: y.0.: expected 496, found 120
// The first shuffle is missing: the two halves of the warp never meet.
#pragma once
#define warp_sum right_warp_sum
#include "tests/course/11_cuda/exercise.h"
#undef warp_sum

namespace exercise {

__device__ inline float warp_sum(float x) {
  for (int bits = 8; bits > 0; bits /= 2) x += __shfl_xor_sync(~0u, x, bits);
  return x;
}

}  // namespace exercise
