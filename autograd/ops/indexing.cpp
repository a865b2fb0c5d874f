// Elements by position. The host turns ids and masks into positions of the flat tensor, as many as there are elements
// to pick, put or add; kernels with ids move these.
#include "braid/autograd/indexing.h"

#include "braid/autograd/composed.h"
#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/entries.h"
#include "braid/autograd/detail/index_parts.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

using index_parts::Ids;
using index_parts::Part;
using index_parts::Positions;
using index_parts::Range;

Tensor flat(const Tensor& x) { return reshape(x, {x.numel()}); }

Tensor on(Device device, const Positions& positions, const Shape& shape) {
  return from_vector(positions, shape).to(device);
}

// The elements of y at ids of some of its axes. parts: the index, whose other parts y has taken.
Tensor at_ids(const Tensor& y, const std::vector<Part>& parts) {
  const index_parts::PlacesOfIds where_ids(parts);
  std::vector<int> order, others;
  int axis = 0;
  for (const Part& part : parts)
    if (!std::holds_alternative<int64_t>(part)) (std::holds_alternative<Ids>(part) ? order : others).push_back(axis++);
  int64_t size = 1;
  Positions combined(static_cast<size_t>(numel(where_ids.shape)), 0);
  for (size_t k = parts.size(), a = order.size(); k-- > 0;)
    if (const auto* ids = std::get_if<Ids>(&parts[k])) {
      index_parts::add_repeated(combined, *ids, where_ids.shape, size);
      size *= y.dim(order[--a]);
    }
  const int before = where_ids.neighbours() ? order[0] : 0;
  Shape rows{size};
  for (const int a : others) rows.push_back(y.dim(a));
  order.insert(order.end(), others.begin(), others.end());
  Tensor picked = index_select(reshape(permute(y, order), rows), on(y.device(), combined, where_ids.shape));
  if (before == 0) return picked;
  // (ids..., before, behind) -> (before, ids..., behind)
  std::vector<int> back;
  const int r = where_ids.shape.rank();
  for (int a = 0; a < before; ++a) back.push_back(r + a);
  for (int a = 0; a < r; ++a) back.push_back(a);
  for (int a = r + before; a < picked.rank(); ++a) back.push_back(a);
  return permute(picked, back);
}

// y = x with values[i] at position at[i] of the flat x; the positions differ   dx = dy, but 0 there   dvalues = dy
// there
Tensor placed(const char* op, const Tensor& x, const Tensor& values, const Tensor& at) {
  Tensor y = x.detach().clone();
  backend(x.device()).index.put(values.detach().contiguous(), at, y);
  return record(
      op, y, {x, values},
      differentiable([=, of_x = requires_grad(x), of_values = requires_grad(values)](const Tensor& dy) -> Grads {
        const Tensor nothing = of_x ? zeros(at.shape(), dy.dtype(), dy.device()) : Tensor();
        return {of_x ? placed(op, dy, nothing, at) : Tensor(), of_values ? select_rows(op, flat(dy), at) : Tensor()};
      }));
}

// x with the elements at these positions of the flat x replaced by those of values; of equal positions the last counts.
Tensor replaced(const char* op, const Tensor& x, const Positions& positions, const Tensor& values) {
  std::vector<bool> taken(static_cast<size_t>(x.numel()));
  Positions targets, sources;
  for (size_t i = positions.size(); i-- > 0;) {
    if (taken[static_cast<size_t>(positions[i])]) continue;
    taken[static_cast<size_t>(positions[i])] = true;
    targets.push_back(positions[i]);
    sources.push_back(static_cast<int64_t>(i));
  }
  const Shape count{std::ssize(targets)};
  const bool all = targets.size() == positions.size();
  const Tensor given = all ? flat(values) : select_rows(op, flat(values), on(x.device(), sources, count));
  return placed(op, x, given, on(x.device(), all ? positions : targets, count));
}

// x with values[i] added at position i of the flat x   dx = dy   dvalues = dy there
Tensor added(const char* op, const Tensor& x, const Positions& positions, const Tensor& values) {
  const Tensor at = on(x.device(), positions, {std::ssize(positions)}), terms = flat(values);
  Tensor y = x.detach().clone(), sums = y.reshaped({y.numel()});
  backend(x.device()).index.add(terms.detach(), at, sums);
  return record(op, y, {x, terms}, differentiable([=, of_terms = requires_grad(terms)](const Tensor& dy) -> Grads {
                  return {dy, of_terms ? select_rows(op, flat(dy), at) : Tensor()};
                }));
}

// Positions in x of one id per element along an axis; ids of `shape`, which is x's but along the axis.
Positions along(const char* op, const Shape& x, const Tensor& ids, int axis) {
  Positions list = index_parts::ids_of(op, ids, x[axis]);
  const Strides strides = contiguous_strides(x);
  for (size_t i = 0; i < list.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    int64_t position = list[i] * strides[axis];
    for (int a = ids.rank() - 1; a >= 0; --a) {
      if (a != axis) position += rest % ids.dim(a) * strides[a];
      rest /= ids.dim(a);
    }
    list[i] = position;
  }
  return list;
}

Shape with_size(Shape shape, int axis, int64_t size) {
  shape[axis] = size;
  return shape;
}

void check_ids_of(const char* op, const Tensor& x, const Tensor& ids, int axis) {
  check(ids.rank() == x.rank() && ids.shape() == with_size(x.shape(), axis, ids.dim(axis)), op,
        [&] { return str("ids ", ids.shape(), " must have the sizes of ", x.shape(), " but along axis ", axis); });
}

}  // namespace

Tensor index(const Tensor& x, const std::vector<Index>& at) {
  const CalledOp called("index");
  const std::vector<Part> parts = index_parts::read(x, at);
  Tensor y = x;
  int axis = 0;
  bool has_ids = false;
  for (const Part& part : parts) {
    if (const auto* position = std::get_if<int64_t>(&part)) {
      y = select(y, axis, *position);
      continue;
    }
    if (const auto* range = std::get_if<Range>(&part))
      y = range->step == 1 ? slice(y, axis, range->begin, range->begin + range->count)
                           : stepped("index", y, axis, range->begin, range->step, range->count);
    else if (std::holds_alternative<NewAxis>(part))
      y = unsqueeze(y, axis);
    else
      has_ids = true;
    ++axis;
  }
  return has_ids ? at_ids(y, parts) : y;
}

Tensor index_put(const Tensor& x, const std::vector<Index>& at, const Tensor& values) {
  const CalledOp called("index_put");
  check_same("index_put", x, values);
  const auto [positions, shape] = index_parts::positions_of(x, at);
  return replaced("index_put", x, positions, expand(values, shape));
}

Tensor index_add(const Tensor& x, const std::vector<Index>& at, const Tensor& values) {
  const CalledOp called("index_add");
  check_float("index_add", x);
  check_same("index_add", x, values);
  const auto [positions, shape] = index_parts::positions_of(x, at);
  return added("index_add", x, positions, expand(values, shape));
}

Tensor index_select(const Tensor& x, const Tensor& ids, int axis) {
  const CalledOp called("index_select");
  check(ids.rank() == 1, "index_select", [&] { return str("needs ids (k) for an axis, got ", ids.shape()); });
  const int a = normal_axis(axis, x.rank(), "index_select");
  return entries("index_select", x, a, index_parts::ids_of("index_select", ids, x.dim(a)));
}

Tensor take_along_axis(const Tensor& x, const Tensor& ids, int axis) {
  const char* op = "take_along_axis";
  const CalledOp called(op);
  check(ids.rank() == x.rank(), op, [&] {
    return str("ids ", ids.shape(), " need the axes of ", x.shape(), "; index_select() takes a list of ids");
  });
  const int a = normal_axis(axis, x.rank(), op);
  const Shape others = broadcast(with_size(x.shape(), a, 1), with_size(ids.shape(), a, 1), op);
  const Tensor wide = expand(x, with_size(others, a, x.dim(a)));
  const Tensor list = ids.expanded(with_size(others, a, ids.dim(a)));
  return index_select(flat(wide), on(x.device(), along(op, wide.shape(), list, a), list.shape()));
}
Tensor gather(const Tensor& x, const Tensor& ids, int axis) {
  const CalledOp called("gather");
  return take_along_axis(x, ids, axis);
}

Tensor scatter(const Tensor& x, const Tensor& ids, const Tensor& values, int axis) {
  const CalledOp called("scatter");
  check_same("scatter", x, values);
  const int a = normal_axis(axis, x.rank(), "scatter");
  check_ids_of("scatter", x, ids, a);
  return replaced("scatter", x, along("scatter", x.shape(), ids, a), expand(values, ids.shape()));
}
Tensor scatter_add(const Tensor& x, const Tensor& ids, const Tensor& values, int axis) {
  const CalledOp called("scatter_add");
  check_float("scatter_add", x);
  check_same("scatter_add", x, values);
  const int a = normal_axis(axis, x.rank(), "scatter_add");
  check_ids_of("scatter_add", x, ids, a);
  return added("scatter_add", x, along("scatter_add", x.shape(), ids, a), expand(values, ids.shape()));
}

Tensor take(const Tensor& x, const Tensor& ids) {
  const CalledOp called("take");
  return index_select(flat(x), on(x.device(), index_parts::ids_of("take", ids, x.numel()), ids.shape()));
}

Tensor nonzero(const Tensor& x) {
  const std::vector<Positions> axes = index_parts::places(x);
  const auto count =
      axes.empty() ? static_cast<int64_t>(ne(x.detach(), 0.0).item()) : static_cast<int64_t>(axes[0].size());
  Tensor found = empty({count, x.rank()}, DType::i64);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t a = 0; a < x.rank(); ++a)
      found.mutable_data<int64_t>()[i * x.rank() + a] = axes[static_cast<size_t>(a)][static_cast<size_t>(i)];
  return found.to(x.device());
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  const CalledOp called("masked_select");
  check_mask("masked_select", mask);
  const Shape shape = broadcast(x.shape(), mask.shape(), "masked_select");
  const Tensor wide = flat(expand(x, shape));
  return index(wide, {mask.expanded(shape).contiguous().reshaped({wide.numel()})});
}

Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& values) {
  const CalledOp called("masked_scatter");
  check_same("masked_scatter", x, values);
  check(
      mask.dtype() == DType::u8 && broadcast(x.shape(), mask.shape(), "masked_scatter") == x.shape(), "masked_scatter",
      [&] { return str("needs a mask of u8 that repeats to ", x.shape(), ", got ", mask.dtype(), " ", mask.shape()); });
  const Positions where_to = index_parts::places(mask.expanded(x.shape()).contiguous().reshaped({x.numel()}))[0];
  const auto count = static_cast<int64_t>(where_to.size());
  check(values.numel() >= count, "masked_scatter", [&] {
    return str("the mask has ", count, " places, the values ", values.numel(), " elements; give at least as many");
  });
  return replaced("masked_scatter", x, where_to, slice(flat(values), 0, 0, count));
}

}  // namespace braid
