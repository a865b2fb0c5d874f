// Elements of rows by index, and back: two linear maps, each the derivative of the other, so that all derivatives
// exist. For autograd/ops/*.cpp.
#pragma once
#include "braid/autograd/record.h"

namespace braid {

// y[..., j] = x[..., indices[..., j]]: x (..., n), indices (..., k) i64, contiguous, in range and different in a row.
Tensor take_in_rows(const char* op, const Tensor& x, const Tensor& indices);
// x (..., n) = 0, except x[..., indices[..., j]] = y[..., j].
Tensor place_in_rows(const char* op, const Tensor& y, const Tensor& indices, int64_t n);

}  // namespace braid
