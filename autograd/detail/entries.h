// Rows and entries by their ids, in range: what ops that select and rearrange are made of. For autograd/ops/*.cpp. The
// first two are each other's adjoint, so that all derivatives exist. op: for errors.
#pragma once
#include <vector>

#include "braid/tensor/tensor.h"

namespace braid {

// y[i] = x[ids[i]]: x (V, D...) of any type, ids (...) contiguous -> (..., D...).
Tensor select_rows(const char* op, const Tensor& x, const Tensor& ids);
// y of `shape` (V, D...): y[v] = sum over the i with ids[i] = v of x[i]; floats.
Tensor add_rows(const char* op, const Tensor& x, const Tensor& ids, const Shape& shape);
// y[..., i, ...] = x[..., ids[i], ...] along an axis >= 0. The ids are in range; x may have any type. All derivatives.
Tensor entries(const char* op, const Tensor& x, int axis, const std::vector<int64_t>& ids);
// y[..., i, ...] = x[..., first + i step, ...] for i < count, a copy; the step may be negative. All derivatives.
Tensor stepped(const char* op, const Tensor& x, int axis, int64_t first, int64_t step, int64_t count);

}  // namespace braid
