// The adjoint of gather(). For autograd/ops/*.cpp.
#pragma once
#include "braid/tensor/tensor.h"

namespace braid {

// y (..., V) of `shape`: y[..., j] = x[...] where j = ids[...], else 0; ids i64 in range. Differentiable.
Tensor scatter_rows(const Tensor& x, const Tensor& ids, const Shape& shape);

}  // namespace braid
