// Largest and smallest elements, and where they are.
#include "braid/autograd/detail/axes.h"
#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/take.h"
#include "braid/autograd/ops.h"
#include "braid/autograd/reductions.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

// y_j = x_i(j)   dx_i(j) = dy_j, else 0
Tensor take_in_rows(const char* op, const Tensor& x, const Tensor& indices) {
  Tensor y = empty(indices.shape(), x.dtype(), x.device());
  backend(x.device()).order.take(x.detach().contiguous(), indices, y);
  return record(op, y, {x, indices}, differentiable([op, indices, n = x.dim(-1)](const Tensor& dy) -> Grads {
                  return {place_in_rows(op, dy, indices, n), {}};
                }));
}

// x_i(j) = y_j, else 0   dy_j = dx_i(j)
Tensor place_in_rows(const char* op, const Tensor& y, const Tensor& indices, int64_t n) {
  Shape shape = y.shape();
  shape[-1] = n;
  Tensor x = empty(shape, y.dtype(), y.device());
  backend(y.device()).order.sort_backward(y.detach().contiguous(), indices, x);
  return record(op, x, {y, indices}, differentiable([op, indices](const Tensor& dx) -> Grads {
                  return {take_in_rows(op, dx, indices), {}};
                }));
}

namespace {

void check_not_empty(const char* op, const Tensor& x, Axes axes) {
  for (int axis : axes)
    check(x.dim(axis) > 0, op,
          [&] { return str("axis ", axis, " of ", x.shape(), " is empty; an extreme needs at least one element"); });
}

Tensor extreme_values(ReduceOp kind, const Tensor& x, const Shape& kept) {
  Tensor y = empty(kept, x.dtype(), x.device());
  backend(x.device()).reduce.axes(kind, x.detach(), y);
  return y;
}

// Rows (..., n) -> (...), i64.
Tensor extreme_indices(ReduceOp kind, const Tensor& rows) {
  Tensor index = empty(axes::dropped_shape(rows.shape(), {-1}), DType::i64, rows.device());
  const OrderKernels& order = backend(rows.device()).order;
  if (kind == ReduceOp::max)
    order.argmax(rows.detach(), index);
  else
    order.argmin(rows.detach(), index);
  return index;
}

// y = max or min of x over the axes   dx = dy at the first element, in row-major order, that is equal to y, else 0
Tensor extreme(const char* op, ReduceOp kind, const Tensor& x, Axes over, bool keep) {
  const axes::Rows rows(op, x, over);
  check_not_empty(op, x, over);
  if (over.empty()) return reshape(x, x.shape());
  Tensor y = extreme_values(kind, x, rows.kept).reshaped(keep ? rows.kept : rows.dropped);
  if (!recording({x})) return y;
  const Tensor ids = extreme_indices(kind, rows.to_rows(x.detach())).unsqueezed(-1);
  return record(op, y, {x}, differentiable([=](const Tensor& dy) -> Grads {
                  return {rows.from_rows(place_in_rows(op, reshape(dy, ids.shape()), ids, rows.n))};
                }));
}

// y = max or min of x over the axes   dx = dy / (number of elements equal to y) at those, else 0
Tensor shared_extreme(const char* op, ReduceOp kind, const Tensor& x, Axes over, bool keep) {
  const Shape kept = axes::kept_shape(op, x.shape(), over);
  check_not_empty(op, x, over);
  const Tensor y = extreme_values(kind, x, kept);
  const std::vector<int> list(over.begin(), over.end());
  return record(op, y.reshaped(keep ? kept : axes::dropped_shape(x.shape(), over)), {x},
                differentiable([=, values = x.detach()](const Tensor& dy) -> Grads {
                  // NaN equals nothing: where it is the result, the NaNs share.
                  const DType type = accumulate_type(values.dtype());
                  const Tensor same = eq(values, y).to(type) + ne(values, values).to(type);
                  const Tensor share = div(same, sum(same, list, true)).to(values.dtype());
                  return {mul(reshape(dy, kept), share)};
                }));
}

Tensor index_along(const char* op, ReduceOp kind, const Tensor& x, int axis, bool keep) {
  no_gradient(op, x);
  const CalledOp called(op);
  const int a = axis_of(op, x, axis);
  check(x.dim(a) > 0, op, [&] {
    return a == x.rank() - 1 ? str("the last axis of ", x.shape(), " is empty")
                             : str("axis ", axis, " of ", x.shape(), " is empty");
  });
  const Tensor index = extreme_indices(kind, a == x.rank() - 1 ? x : axes::Rows(op, x, {a}).to_rows(x));
  return keep ? index.unsqueezed(a) : index;
}

Tensor index_of_all(const char* op, ReduceOp kind, const Tensor& x) {
  no_gradient(op, x);
  check(x.numel() > 0, op, [&] { return str(x.shape(), " has no element; an extreme needs one"); });
  return extreme_indices(kind, x.contiguous().reshaped({x.numel()}));
}

ValuesAndIndices with_indices(const char* op, ReduceOp kind, const Tensor& x, int axis, bool keep) {
  const CalledOp called(op);
  const int a = normal_axis(axis, x.rank(), op);
  check_not_empty(op, x, {a});
  const axes::Rows rows(op, x, {a});
  const Tensor lines = rows.to_rows(x), ids = extreme_indices(kind, lines);
  return {rows.result(take_in_rows(op, lines, ids.unsqueezed(-1)), keep), keep ? ids.unsqueezed(a) : ids};
}

}  // namespace

Tensor max(const Tensor& x, int axis, bool keep) { return extreme("max", ReduceOp::max, x, {axis}, keep); }
Tensor min(const Tensor& x, int axis, bool keep) { return extreme("min", ReduceOp::min, x, {axis}, keep); }
Tensor max(const Tensor& x, Axes axes, bool keep) { return extreme("max", ReduceOp::max, x, axes, keep); }
Tensor min(const Tensor& x, Axes axes, bool keep) { return extreme("min", ReduceOp::min, x, axes, keep); }
Tensor max(const Tensor& x) {
  check(x.numel() > 0, "max", [&] { return str(x.shape(), " has no element; an extreme needs one"); });
  return extreme("max", ReduceOp::max, x, axes::all_of(x), false);
}
Tensor min(const Tensor& x) {
  check(x.numel() > 0, "min", [&] { return str(x.shape(), " has no element; an extreme needs one"); });
  return extreme("min", ReduceOp::min, x, axes::all_of(x), false);
}
Tensor amax(const Tensor& x, Axes axes, bool keep) { return shared_extreme("amax", ReduceOp::max, x, axes, keep); }
Tensor amin(const Tensor& x, Axes axes, bool keep) { return shared_extreme("amin", ReduceOp::min, x, axes, keep); }
Tensor amax(const Tensor& x) { return amax(x, axes::all_of(x)); }
Tensor amin(const Tensor& x) { return amin(x, axes::all_of(x)); }
ValuesAndIndices max_with_indices(const Tensor& x, int axis, bool keep) {
  return with_indices("max_with_indices", ReduceOp::max, x, axis, keep);
}
ValuesAndIndices min_with_indices(const Tensor& x, int axis, bool keep) {
  return with_indices("min_with_indices", ReduceOp::min, x, axis, keep);
}

Tensor argmax(const Tensor& x) { return index_along("argmax", ReduceOp::max, x, -1, false); }
Tensor argmax(const Tensor& x, int axis, bool keep) { return index_along("argmax", ReduceOp::max, x, axis, keep); }
Tensor argmin(const Tensor& x, int axis, bool keep) { return index_along("argmin", ReduceOp::min, x, axis, keep); }
Tensor argmax_of_all(const Tensor& x) { return index_of_all("argmax_of_all", ReduceOp::max, x); }
Tensor argmin_of_all(const Tensor& x) { return index_of_all("argmin_of_all", ReduceOp::min, x); }

}  // namespace braid
