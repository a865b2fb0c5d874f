// The derivative that mul and sum_product share. For autograd/ops/*.cpp only.
#pragma once
#include "braid/tensor/tensor.h"

namespace braid {

// Sum of x*y over the axes of their common shape along which `shape` has size 1 or no axis, in that shape; an axis of
// `shape` on which neither depends is repeated. The full product is not formed where something is summed. No history.
Tensor mul_reduce_to(const Tensor& x, const Tensor& y, const Shape& shape);
// The same; while recording is on by ops that record.
Tensor product_to(const Tensor& x, const Tensor& y, const Shape& shape);

}  // namespace braid
