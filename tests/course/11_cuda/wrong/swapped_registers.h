// expect: tensor_cores of .16, 16. and .16, 8., threads from first to last: y.0.: expected 38, found
// The registers a[1] and a[2] are exchanged.
#pragma once
#include "course/11_cuda/gpu.h"
#define mma_bf16(c, a, b0, b1) mma_bf16(c, {a[0], a[2], a[1], a[3]}, b0, b1)
#include "tests/course/11_cuda/exercise.h"
