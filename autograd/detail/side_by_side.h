// Two tensors of one shape that lie side by side in memory, as the halves of one.
#pragma once
#include <utility>

#include "braid/tensor/tensor.h"

namespace braid {

// The contiguous tensor whose first half along `axis` is a and whose second half is b, where memory holds it so; else
// an empty handle. Neither may require a gradient while recording is on.
Tensor joined(const Tensor& a, const Tensor& b, int axis);

// Two tensors with the layout of a and b: halves of one tensor where those are, else contiguous ones. Uninitialised.
std::pair<Tensor, Tensor> pair_like(const Tensor& a, const Tensor& b, int axis);

}  // namespace braid
