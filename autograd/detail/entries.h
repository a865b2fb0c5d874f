// Entries of one axis by their indices: what several ops that rearrange are made of.
#pragma once
#include <vector>

#include "braid/tensor/tensor.h"

namespace braid {

// y[..., i, ...] = x[..., ids[i], ...] along an axis >= 0. The ids are in range; x may have any type. All derivatives.
Tensor entries(const char* op, const Tensor& x, int axis, const std::vector<int64_t>& ids);

}  // namespace braid
