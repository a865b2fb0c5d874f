// expect: of 1 7 7 2, element 2 in row-major order: expected 0, found 1.*hint: several entries equal the maximum
// The gradient goes to every entry that equals the maximum.
#pragma once
#include <braid/autograd.h>

#define row_max right_row_max
#include "tests/course/02_reverse_mode/exercise.h"
#undef row_max

namespace exercise {

inline Tensor row_max(const Tensor& x) {
  const Tensor value = x.detach(), y = no_grad([&] { return max(value, 1); });
  return record("row_max", y, {x}, [value, y](const Tensor& dy) {
    return Grads{cast(eq(value, unsqueeze(y, 1)), value.dtype()) * unsqueeze(dy, 1)};
  });
}

}  // namespace exercise
