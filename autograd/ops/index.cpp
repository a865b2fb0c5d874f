#include "autograd/ops.h"
#include "autograd/ops/check.h"

namespace braid {

void check_ids(const char* op, const char* what, const Tensor& ids, int64_t limit, bool negative_allowed) {
  check(is_index(ids.dtype()), op,
        [&] { return std::string(what) + " must be i64 or i32, got " + str(ids.dtype()); });
  if (ids.numel() == 0) return;
  Tensor range = empty({2}, DType::i64, ids.device());
  backend(ids.device()).index_range(ids.contiguous(), range);
  std::vector<int64_t> low_high = range.to_vector<int64_t>();
  if ((low_high[0] >= 0 || negative_allowed) && low_high[1] < limit) return;

  std::vector<int64_t> values = ids.to_vector<int64_t>();
  size_t at = 0;
  while ((values[at] >= 0 || negative_allowed) && values[at] < limit) ++at;
  Shape position = ids.shape();
  int64_t rest = static_cast<int64_t>(at);
  for (int a = ids.rank() - 1; a >= 0; --a) {
    position[a] = rest % ids.dim(a);
    rest /= ids.dim(a);
  }
  std::string allowed = "0 to " + std::to_string(limit - 1);
  if (limit == 0) allowed = "none, because there are no rows";
  if (negative_allowed) allowed += ", or negative for \"not counted\"";
  fail(ErrorKind::input, "[" + std::string(op) + "] " + what + " " + std::to_string(values[at]) + " at position " +
                             str(position) + " is out of range; allowed: " + allowed);
}

namespace {

// The shape (ids..., D...) of table (V, D...) read at ids.
Shape selected_shape(const char* op, const Tensor& table, const Tensor& ids) {
  check(table.rank() >= 1, op, [&] { return "needs a table with at least one axis, got " + str(table.shape()); });
  check(ids.rank() + table.rank() - 1 <= Shape::max_rank, op, [&] {
    return "ids " + str(ids.shape()) + " into " + str(table.shape()) + " would need more than 6 axes";
  });
  Shape shape = ids.shape();
  for (int a = 1; a < table.rank(); ++a) shape.push_back(table.dim(a));
  return shape;
}

Tensor select(const char* op, const char* what, const Tensor& table, const Tensor& ids) {
  Shape shape = selected_shape(op, table, ids);
  check(ids.device() == table.device(), op,
        [&] { return "the table is on " + str(table.device()) + ", the ids on " + str(ids.device()); });
  check_ids(op, what, ids, table.dim(0));
  Tensor y = empty(shape, table.dtype(), table.device()), list = ids.contiguous();
  backend(table.device()).index_select(table.contiguous(), list, y);
  Shape table_shape = table.shape();
  return record(op, y, {table}, [list, table_shape](const Tensor& dy) -> Grads {
    Tensor dtable = zeros(table_shape, dy.dtype(), dy.device());
    backend(dy.device()).index_add(dy.contiguous(), list, dtable);
    return {dtable};
  });
}

}  // namespace

// y[i] = x[ids[i]].   dx[v] = sum over the i with ids[i] = v of dy[i]
Tensor index_select(const Tensor& x, const Tensor& ids) { return select("index_select", "index", x, ids); }

// The same, with messages about tokens.
Tensor embedding(const Tensor& table, const Tensor& ids) {
  check(table.rank() == 2, "embedding", [&] { return "needs a table (V, D), got " + str(table.shape()); });
  return select("embedding", "token id", table, ids);
}

// y[...] = x[..., ids[...]].   dx[..., j] = dy[...] where j = ids[...], else 0
Tensor gather_last(const Tensor& x, const Tensor& ids) {
  check(x.rank() >= 1, "gather_last", [&] { return "needs at least one axis, got " + str(x.shape()); });
  Shape rows;
  for (int a = 0; a < x.rank() - 1; ++a) rows.push_back(x.dim(a));
  check(ids.shape() == rows, "gather_last",
        [&] { return "ids " + str(ids.shape()) + " do not fit " + str(x.shape()) + ": need one id per row"; });
  check(ids.device() == x.device(), "gather_last",
        [&] { return "the input is on " + str(x.device()) + ", the ids on " + str(ids.device()); });
  check_ids("gather_last", "index", ids, x.dim(-1));
  Tensor y = empty(rows, x.dtype(), x.device()), list = ids.contiguous();
  backend(x.device()).gather_last(x.contiguous(), list, y);
  Shape shape = x.shape();
  return record("gather_last", y, {x}, [list, shape](const Tensor& dy) -> Grads {
    Tensor dx = empty(shape, dy.dtype(), dy.device());
    backend(dy.device()).scatter_last(dy.contiguous(), list, dx);
    return {dx};
  });
}

}  // namespace braid
