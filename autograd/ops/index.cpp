// Elements chosen by ids, which are checked once (autograd/detail/check.h).
#include "braid/autograd/detail/check.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

// y[i] = x[ids[i]], x (V, D...).   dx[v] = sum over the i with ids[i] = v of dy[i]
Tensor select_rows(const char* op, const char* id_name, const Tensor& x, const Tensor& ids) {
  check(ids.device() == x.device(), op,
        [&] { return str("the input is on ", x.device(), ", the ids on ", ids.device()); });
  check_ids(op, id_name, ids, x.dim(0));
  Shape shape = ids.shape();
  for (int a = 1; a < x.rank(); ++a) shape.push_back(x.dim(a));
  Tensor y = empty(shape, x.dtype(), x.device()), list = ids.contiguous();
  backend(x.device()).index.select(x.detach().contiguous(), list, y);
  return record(op, y, {x}, [list, shape_x = x.shape()](const Tensor& dy) -> Grads {
    Tensor dx = zeros(shape_x, dy.dtype(), dy.device());
    backend(dy.device()).index.add(dy.contiguous(), list, dx);
    return {dx};
  });
}

}  // namespace

Tensor index_select(const Tensor& x, const Tensor& ids) {
  check(x.rank() >= 1, "index_select", [&] { return str("needs at least one axis, got ", x.shape()); });
  check(ids.rank() + x.rank() - 1 <= Shape::max_rank, "index_select",
        [&] { return str("ids ", ids.shape(), " into ", x.shape(), " would need more than 6 axes"); });
  return select_rows("index_select", "index", x, ids);
}

Tensor embedding(const Tensor& table, const Tensor& ids) {
  check(table.rank() == 2, "embedding", [&] { return str("needs a table (V, D), got ", table.shape()); });
  check(ids.rank() < Shape::max_rank, "embedding", [&] { return str("ids ", ids.shape(), " have too many axes"); });
  return select_rows("embedding", "token id", table, ids);
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
  Tensor y = empty(leading, x.dtype(), x.device()), list = ids.contiguous();
  backend(x.device()).index.gather(x.detach().contiguous(), list, y);
  return record("gather", y, {x}, [list, shape_x = x.shape()](const Tensor& dy) -> Grads {
    Tensor dx = empty(shape_x, dy.dtype(), dy.device());
    backend(dy.device()).index.scatter(dy.contiguous(), list, dx);
    return {dx};
  });
}

}  // namespace braid
