// Elements chosen by ids, which are checked once (autograd/detail/check.h).
#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/entries.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

Tensor select_named(const char* op, const char* id_name, const Tensor& x, const Tensor& ids) {
  check(ids.device() == x.device(), op,
        [&] { return str("the input is on ", x.device(), ", the ids on ", ids.device()); });
  check_ids(op, id_name, ids, x.dim(0));
  return select_rows(op, x, ids.contiguous());
}

Tensor scattered(const Tensor& x, const Tensor& list, const Shape& shape);

// One element of each row of x, at ids in range.
Tensor gathered(const Tensor& x, const Tensor& list) {
  Shape leading;
  for (int a = 0; a < x.rank() - 1; ++a) leading.push_back(x.dim(a));
  Tensor y = empty(leading, x.dtype(), x.device());
  backend(x.device()).index.gather(x.detach().contiguous(), list, y);
  return record("gather", y, {x, list}, differentiable([list, shape_x = x.shape()](const Tensor& dy) -> Grads {
                  return {scattered(dy, list, shape_x), {}};
                }));
}

// y[..., j] = x[...] where j = ids[...], else 0
Tensor scattered(const Tensor& x, const Tensor& list, const Shape& shape) {
  Tensor y = empty(shape, x.dtype(), x.device());
  backend(x.device()).index.scatter(x.detach().contiguous(), list, y);
  return record("gather", y, {x, list}, differentiable([list](const Tensor& dy) -> Grads {
                  return {gathered(dy, list), {}};
                }));
}

}  // namespace

// dx[v] = sum over the i with ids[i] = v of dy[i]
Tensor select_rows(const char* op, const Tensor& x, const Tensor& ids) {
  Shape shape = ids.shape();
  for (int a = 1; a < x.rank(); ++a) shape.push_back(x.dim(a));
  Tensor y = empty(shape, x.dtype(), x.device());
  backend(x.device()).index.select(x.detach().contiguous(), ids, y);
  return record(op, y, {x, ids}, differentiable([=, shape_x = x.shape()](const Tensor& dy) -> Grads {
                  return {add_rows(op, dy, ids, shape_x), {}};
                }));
}

// dx[i] = dy[ids[i]]
Tensor add_rows(const char* op, const Tensor& x, const Tensor& ids, const Shape& shape) {
  Tensor y = zeros(shape, x.dtype(), x.device());
  backend(x.device()).index.add(x.detach().contiguous(), ids, y);
  return record(op, y, {x, ids}, differentiable([=](const Tensor& dy) -> Grads {
                  return {select_rows(op, dy, ids), {}};
                }));
}

Tensor entries(const char* op, const Tensor& x, int axis, const std::vector<int64_t>& ids) {
  const Tensor list = from_vector(ids, {std::ssize(ids)}, x.device());
  if (axis == 0) return select_rows(op, x, list);
  return transpose(select_rows(op, transpose(x, 0, axis), list), 0, axis);
}

namespace {

// The view of x[..., first + i step, ...], i < count. Its strides may be negative: for a copy alone.
Tensor every(const Tensor& x, int axis, int64_t first, int64_t step, int64_t count) {
  Shape shape = x.shape();
  Strides strides = x.strides();
  shape[axis] = count;
  const int64_t offset = count == 0 ? 0 : first * strides[axis];
  strides[axis] *= step;
  return x.view(shape, strides, offset);
}

// y of n entries along the axis: y[..., first + i step, ...] = x[..., i, ...], else 0; the adjoint of stepped().
Tensor spread(const char* op, const Tensor& x, int axis, int64_t first, int64_t step, int64_t n) {
  const int64_t count = x.dim(axis);
  if (step < 0)
    return spread(op, stepped(op, x, axis, count - 1, -1, count), axis, first + (count - 1) * step, -step, n);
  Shape shape = x.shape();
  shape[axis] = n;
  Tensor y = zeros(shape, x.dtype(), x.device());
  every(y, axis, first, step, count).copy_(x.detach());
  return record(op, y, {x},
                differentiable([=](const Tensor& dy) -> Grads { return {stepped(op, dy, axis, first, step, count)}; }));
}

}  // namespace

Tensor stepped(const char* op, const Tensor& x, int axis, int64_t first, int64_t step, int64_t count) {
  const int64_t n = x.dim(axis);
  return record(op, every(x.detach(), axis, first, step, count).clone(), {x},
                differentiable([=](const Tensor& dy) -> Grads {
                  const bool reversed = step == -1 && count == n;  // its own adjoint
                  return {reversed ? stepped(op, dy, axis, first, step, count) : spread(op, dy, axis, first, step, n)};
                }));
}

Tensor index_select(const Tensor& x, const Tensor& ids) {
  check(x.rank() >= 1, "index_select", [&] { return str("needs at least one axis, got ", x.shape()); });
  check(ids.rank() + x.rank() - 1 <= Shape::max_rank, "index_select", [&] {
    return str("ids ", ids.shape(), " into ", x.shape(), " would need more than ", Shape::max_rank, " axes");
  });
  return select_named("index_select", "index", x, ids);
}

Tensor embedding(const Tensor& table, const Tensor& ids) {
  check(table.rank() == 2, "embedding", [&] { return str("needs a table (V, D), got ", table.shape()); });
  check(ids.rank() < Shape::max_rank, "embedding", [&] { return str("ids ", ids.shape(), " have too many axes"); });
  return select_named("embedding", "token id", table, ids);
}

// y[...] = x[..., ids[...]].   dx[..., j] = dy[...] where j = ids[...], else 0
Tensor gather(const Tensor& x, const Tensor& ids) {
  check(x.rank() >= 1, "gather", [&] { return str("needs at least one axis, got ", x.shape()); });
  Shape leading;  // without the last axis
  for (int a = 0; a < x.rank() - 1; ++a) leading.push_back(x.dim(a));
  check(ids.shape() == leading, "gather",
        [&] { return str("ids ", ids.shape(), " do not fit ", x.shape(), ": need one id per row"); });
  check(ids.device() == x.device(), "gather",
        [&] { return str("the input is on ", x.device(), ", the ids on ", ids.device()); });
  check_ids("gather", "index", ids, x.dim(-1));
  return gathered(x, ids.contiguous());
}

}  // namespace braid
