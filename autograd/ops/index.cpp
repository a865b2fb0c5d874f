#include "braid/autograd/detail/check.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

// y[i] = x[ids[i]].   dx[v] = sum over the i with ids[i] = v of dy[i]
Tensor index_select(const Tensor& x, const Tensor& ids) {
  check(x.rank() >= 1, "index_select", [&] { return "needs at least one axis, got " + str(x.shape()); });
  check(ids.rank() + x.rank() - 1 <= Shape::max_rank, "index_select",
        [&] { return "ids " + str(ids.shape()) + " into " + str(x.shape()) + " would need more than 6 axes"; });
  check(ids.device() == x.device(), "index_select",
        [&] { return "the input is on " + str(x.device()) + ", the ids on " + str(ids.device()); });
  check_ids("index_select", "index", ids, x.dim(0));
  Shape shape = ids.shape(), shape_x = x.shape();
  for (int a = 1; a < x.rank(); ++a) shape.push_back(x.dim(a));
  Tensor y = empty(shape, x.dtype(), x.device()), list = ids.contiguous();
  backend(x.device()).index.select(x.contiguous(), list, y);
  return record("index_select", y, {x}, [list, shape_x](const Tensor& dy) -> Grads {
    Tensor dx = zeros(shape_x, dy.dtype(), dy.device());
    backend(dy.device()).index.add(dy.contiguous(), list, dx);
    return {dx};
  });
}

// y[...] = x[..., ids[...]].   dx[..., j] = dy[...] where j = ids[...], else 0
Tensor gather(const Tensor& x, const Tensor& ids) {
  check(x.rank() >= 1, "gather", [&] { return "needs at least one axis, got " + str(x.shape()); });
  Shape rows;
  for (int a = 0; a < x.rank() - 1; ++a) rows.push_back(x.dim(a));
  check(ids.shape() == rows, "gather",
        [&] { return "ids " + str(ids.shape()) + " do not fit " + str(x.shape()) + ": need one id per row"; });
  check(ids.device() == x.device(), "gather",
        [&] { return "the input is on " + str(x.device()) + ", the ids on " + str(ids.device()); });
  check_ids("gather", "index", ids, x.dim(-1));
  Tensor y = empty(rows, x.dtype(), x.device()), list = ids.contiguous();
  backend(x.device()).index.gather(x.contiguous(), list, y);
  Shape shape = x.shape();
  return record("gather", y, {x}, [list, shape](const Tensor& dy) -> Grads {
    Tensor dx = empty(shape, dy.dtype(), dy.device());
    backend(dy.device()).index.scatter(dy.contiguous(), list, dx);
    return {dx};
  });
}

}  // namespace braid
