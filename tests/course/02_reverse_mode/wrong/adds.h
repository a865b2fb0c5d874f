// expect: multiply \(2, 3\) by \(2, 3\), element 0 in row-major order: expected
// The sum in place of the product, with the derivative of the sum.
#pragma once
#include <braid/autograd.h>

#define multiply right_multiply
#include "tests/course/02_reverse_mode/exercise.h"
#undef multiply

namespace exercise {

inline Tensor multiply(const Tensor& a, const Tensor& b) {
  const Tensor x = a.detach(), y = b.detach();
  return record("multiply", no_grad([&] { return x + y; }), {a, b}, [x, y](const Tensor& dy) {
    return Grads{sum_to_shape(dy, x.shape()), sum_to_shape(dy, y.shape())};
  });
}

}  // namespace exercise
