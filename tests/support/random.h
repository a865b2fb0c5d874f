// Random inputs of tests.
#pragma once
#include "braid/autograd/ops.h"

namespace braid::test {

// Uniform in (low, high), computed in f64 and rounded once.
inline Tensor random_tensor(const Shape& shape, uint64_t stream, DType dtype = DType::f32, double low = -2,
                            double high = 2) {
  return affine(rand(shape, {5, stream}, DType::f64), high - low, low).to(dtype);
}

// Normal with mean 0, computed in f64 and rounded once.
inline Tensor normal_tensor(const Shape& shape, double deviation, RandomKey key, DType dtype = DType::f32) {
  return scale(randn(shape, key, DType::f64), deviation).to(dtype);
}

}  // namespace braid::test
