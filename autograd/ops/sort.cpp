// Order along the last axis.
#include "braid/autograd/detail/check.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

// y[..., indices[..., j]] = x[..., j], 0 elsewhere; no index twice in a row   dx = dy[..., indices[..., j]]
Tensor unsorted(const Tensor& x, const Tensor& indices, const Shape& shape) {
  Tensor y = empty(shape, x.dtype(), x.device());
  backend(x.device()).order.sort_backward(x.detach().contiguous(), indices, y);
  return record("sort", y, {x}, differentiable([indices](const Tensor& dy) -> Grads {
                  // One element of the row for each of the k: gather() on rows that are repeated.
                  Shape rows = indices.shape();
                  rows.push_back(dy.dim(-1));
                  return {gather(expand(unsqueeze(dy, -2), rows), indices)};
                }));
}

// The first k of the sorted order of each row: x (..., V) -> values, indices (..., k).
// dx[..., indices[..., j]] = dvalues[..., j], 0 elsewhere
ValuesAndIndices sorted(const char* op, const Tensor& x, bool descending, int64_t k) {
  check_float(op, x);
  check(x.rank() >= 1, op, [&] { return str("needs at least one axis, got ", x.shape()); });
  check(k >= 0 && k <= x.dim(-1), op,
        [&] { return str("needs k between 0 and the size of the last axis of ", x.shape(), ", got ", k); });
  Shape shape = x.shape();
  shape[-1] = k;
  Tensor values = empty(shape, x.dtype(), x.device()), indices = empty(shape, DType::i64, x.device());
  backend(x.device()).order.sort(x.detach().contiguous(), descending, values, indices);
  values = record(op, values, {x}, differentiable([indices, shape_x = x.shape()](const Tensor& dy) -> Grads {
                    if (recording()) return {unsorted(dy, indices, shape_x)};
                    Tensor dx = empty(shape_x, dy.dtype(), dy.device());
                    backend(dy.device()).order.sort_backward(dy.contiguous(), indices, dx);
                    return {dx};
                  }));
  return {values, indices};
}

}  // namespace

ValuesAndIndices sort(const Tensor& x, bool descending) {
  return sorted("sort", x, descending, x.rank() > 0 ? x.dim(-1) : 0);
}

ValuesAndIndices topk(const Tensor& x, int64_t k) { return sorted("topk", x, true, k); }

Tensor argsort(const Tensor& x, bool descending) {
  no_gradient("argsort", x);
  return sorted("argsort", x, descending, x.rank() > 0 ? x.dim(-1) : 0).indices;
}

}  // namespace braid
