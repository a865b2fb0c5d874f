// The adjoints of gather() and index_select(). For autograd/ops/*.cpp.
#pragma once
#include "braid/tensor/tensor.h"

namespace braid {

// y (..., V) of `shape`: y[..., j] = x[...] where j = ids[...], else 0; ids i64 in range. Differentiable.
Tensor scatter_rows(const Tensor& x, const Tensor& ids, const Shape& shape);
// y of `shape` (V, D...): y[v] = sum over the i with ids[i] = v of x[i]; ids in range. Differentiable. op: for errors.
Tensor add_rows(const char* op, const Tensor& x, const Tensor& ids, const Shape& shape);

}  // namespace braid
