// Order along the last axis.
#include "braid/autograd/detail/check.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

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
  values = record(op, values, {x}, [indices, shape_x = x.shape()](const Tensor& dy) -> Grads {
    Tensor dx = empty(shape_x, dy.dtype(), dy.device());
    backend(dy.device()).order.sort_backward(dy.contiguous(), indices, dx);
    return {dx};
  });
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
