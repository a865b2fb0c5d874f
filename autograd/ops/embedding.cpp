#include "braid/autograd/detail/check.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

// y[...] = table[ids[...]], table (V, D).   dtable[v] = sum over the positions with id v of dy
Tensor embedding(const Tensor& table, const Tensor& ids) {
  check(table.rank() == 2, "embedding", [&] { return "needs a table (V, D), got " + str(table.shape()); });
  check(ids.rank() < Shape::max_rank, "embedding", [&] { return "ids " + str(ids.shape()) + " have too many axes"; });
  check(ids.device() == table.device(), "embedding",
        [&] { return "the table is on " + str(table.device()) + ", the ids on " + str(ids.device()); });
  check_ids("embedding", "token id", ids, table.dim(0));
  Shape shape = ids.shape();
  shape.push_back(table.dim(1));
  Tensor y = empty(shape, table.dtype(), table.device()), list = ids.contiguous();
  backend(table.device()).index.select(table.contiguous(), list, y);
  Shape shape_table = table.shape();
  return record("embedding", y, {table}, [list, shape_table](const Tensor& dy) -> Grads {
    Tensor dtable = zeros(shape_table, dy.dtype(), dy.device());
    backend(dy.device()).index.add(dy.contiguous(), list, dtable);
    return {dtable};
  });
}

}  // namespace braid
