// Elements by position. The host turns ids and masks into positions of the flat tensor; index_select() picks, and sums
// back in the derivative.
#include "braid/autograd/indexing.h"

#include <algorithm>
#include <numeric>

#include "braid/autograd/composed.h"
#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/entries.h"

namespace braid {

namespace {

using Positions = std::vector<int64_t>;

Tensor flat(const Tensor& x) { return reshape(x, {x.numel()}); }

Tensor on(Device device, const Positions& positions, const Shape& shape) {
  return from_vector(positions, shape).to(device);
}

int64_t inside(const char* op, int64_t id, int64_t n) {
  check(id >= -n && id < n, op,
        [&] { return str("index ", id, " is not in [", -n, ", ", n, "): the axis has ", n, " entries"); });
  return id < 0 ? id + n : id;
}

// The entries of an axis of size n, in order.
Positions entries_of(const Slice& s, int64_t n) {
  check(s.step != 0, "index", "the step of a slice must not be 0");
  const bool forwards = s.step > 0;
  const int64_t low = forwards ? 0 : -1, high = forwards ? n : n - 1;  // where bounds are cut
  const auto bound = [&](const std::optional<int64_t>& given, int64_t otherwise) {
    if (!given) return otherwise;
    return std::clamp(*given < 0 ? *given + n : *given, low, high);
  };
  const int64_t begin = bound(s.begin, forwards ? 0 : n - 1), end = bound(s.end, forwards ? n : -1);
  Positions list;
  for (int64_t i = begin; forwards ? i < end : i > end; i += s.step) list.push_back(i);
  return list;
}

// Positions of what is not 0, one list per axis.
std::vector<Positions> places(const Tensor& mask) {
  const std::vector<double> values = ne(mask.detach(), 0.0).to_vector<double>();
  std::vector<Positions> axes(static_cast<size_t>(mask.rank()));
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0) continue;
    auto rest = static_cast<int64_t>(i);
    for (int a = mask.rank() - 1; a >= 0; --a) {
      axes[static_cast<size_t>(a)].push_back(rest % mask.dim(a));
      rest /= mask.dim(a);
    }
  }
  return axes;
}

// Ids of one axis of the view that the slices leave.
struct AxisIds {
  int axis, entry;  // entry: of the index
  Shape shape;
  Positions ids;
};

Positions ids_of(const char* op, const Tensor& ids, int64_t n) {
  check(ids.dtype() == DType::i64 || ids.dtype() == DType::i32, op,
        [&] { return str("needs ids of i64 or i32, or a mask of u8, got ", ids.dtype()); });
  Positions list = ids.to_vector<int64_t>();
  for (int64_t& id : list) id = inside(op, id, n);
  return list;
}

// `at` with a whole slice for every axis that it leaves out.
std::vector<Index> complete(const char* op, const Tensor& x, const std::vector<Index>& at) {
  int taken = 0, ellipses = 0;
  for (const Index& i : at) {
    const auto* tensor = std::get_if<Tensor>(&i.value);
    ellipses += std::holds_alternative<Ellipsis>(i.value);
    if (tensor && tensor->dtype() == DType::u8)
      taken += tensor->rank();
    else if (!std::holds_alternative<Ellipsis>(i.value) && !std::holds_alternative<NewAxis>(i.value))
      ++taken;
  }
  check(taken <= x.rank() && ellipses <= 1, op, [&] {
    return str("the index takes ", taken, " axes and has ", ellipses, " ellipses, expected at most the ", x.rank(),
               " axes of ", x.shape(), "; one ellipsis may stand");
  });
  std::vector<Index> all;
  for (const Index& i : at) {
    if (std::holds_alternative<Ellipsis>(i.value))
      all.insert(all.end(), static_cast<size_t>(x.rank() - taken), Slice{});
    else
      all.push_back(i);
  }
  if (ellipses == 0) all.insert(all.end(), static_cast<size_t>(x.rank() - taken), Slice{});
  return all;
}

// Ids that broadcast to `shape`, repeated.
Positions repeated(const AxisIds& of, const Shape& shape) {
  return from_vector(of.ids, of.shape).expanded(shape).to_vector<int64_t>();
}

// The elements of y at ids of some of its axes.
Tensor at_ids(const char* op, const Tensor& y, const std::vector<AxisIds>& all) {
  Shape shape;
  for (const AxisIds& one : all) shape = broadcast(shape, one.shape, op);
  std::vector<int> order;
  int64_t size = 1;
  for (const AxisIds& one : all) order.push_back(one.axis), size *= y.dim(one.axis);
  for (int a = 0; a < y.rank(); ++a)
    if (std::ranges::count(order, a) == 0) order.push_back(a);
  Positions combined(static_cast<size_t>(numel(shape)), 0);
  for (const AxisIds& one : all) {
    const Positions ids = repeated(one, shape);
    for (size_t i = 0; i < ids.size(); ++i) combined[i] = combined[i] * y.dim(one.axis) + ids[i];
  }
  Shape rows{size};
  for (size_t i = all.size(); i < order.size(); ++i) rows.push_back(y.dim(order[i]));
  const Tensor picked = index_select(reshape(permute(y, order), rows), on(y.device(), combined, shape));
  const bool neighbours = all.back().entry - all.front().entry == static_cast<int>(all.size()) - 1;
  if (!neighbours || all.front().axis == 0) return picked;
  // (ids..., before, behind) -> (before, ids..., behind)
  std::vector<int> back;
  for (int a = 0; a < all.front().axis; ++a) back.push_back(shape.rank() + a);
  for (int a = 0; a < shape.rank(); ++a) back.push_back(a);
  for (int a = shape.rank() + all.front().axis; a < picked.rank(); ++a) back.push_back(a);
  return permute(picked, back);
}

// x with the elements at these positions of the flat x replaced by those of values.
Tensor replaced(const Tensor& x, const Positions& positions, const Tensor& values) {
  Positions source(static_cast<size_t>(x.numel()));
  std::iota(source.begin(), source.end(), 0);
  for (size_t i = 0; i < positions.size(); ++i)
    source[static_cast<size_t>(positions[i])] = x.numel() + static_cast<int64_t>(i);
  const Tensor both = concat({flat(x), flat(values)}, 0);
  return reshape(index_select(both, on(x.device(), source, {x.numel()})), x.shape());
}

Tensor added(const Tensor& x, const Positions& positions, const Tensor& values) {
  const Tensor list = on(x.device(), positions, {static_cast<int64_t>(positions.size())});
  return add(x, reshape(add_rows("index_add", flat(values), list, {x.numel()}), x.shape()));
}

// 0, 1, 2, ... of the shape of x: what an index picks from it are positions of the flat x.
Tensor numbered(const Shape& shape) {
  Positions all(static_cast<size_t>(numel(shape)));
  std::iota(all.begin(), all.end(), 0);
  return from_vector(all, shape);
}

Tensor host(const Index& i) {
  const auto* tensor = std::get_if<Tensor>(&i.value);
  return tensor ? tensor->to(kCpu) : Tensor();
}
// The positions of an index, and their shape.
std::pair<Positions, Shape> positions_of(const Tensor& x, const std::vector<Index>& at) {
  std::vector<Index> there;
  for (const Index& i : at) there.push_back(std::holds_alternative<Tensor>(i.value) ? Index(host(i)) : i);
  const NoGrad off;
  const Tensor found = index(numbered(x.shape()), there);
  return {found.to_vector<int64_t>(), found.shape()};
}

// Positions in x of one id per element along an axis; ids of `shape`, which is x's but along the axis.
Positions along(const char* op, const Shape& x, const Tensor& ids, int axis) {
  Positions list = ids_of(op, ids, x[axis]);
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
  const std::vector<Index> all = complete("index", x, at);
  const bool has_ids = std::ranges::any_of(all, [](const Index& i) { return std::holds_alternative<Tensor>(i.value); });
  Tensor y = x;
  int axis = 0;
  std::vector<AxisIds> ids;
  for (size_t k = 0; k < all.size(); ++k) {
    const auto entry = static_cast<int>(k);
    if (const auto* position = std::get_if<int64_t>(&all[k].value)) {
      const int64_t i = inside("index", *position, y.dim(axis));
      if (has_ids)
        ids.push_back({axis++, entry, {}, {i}});
      else
        y = select(y, axis, i);
    } else if (const auto* slice_of = std::get_if<Slice>(&all[k].value)) {
      const Positions list = entries_of(*slice_of, y.dim(axis));
      const auto count = static_cast<int64_t>(list.size());
      if (slice_of->step == 1 || list.empty())
        y = slice(y, axis, list.empty() ? 0 : list[0], list.empty() ? 0 : list[0] + count);
      else
        y = entries("index", y, axis, list);
      ++axis;
    } else if (std::holds_alternative<NewAxis>(all[k].value)) {
      y = unsqueeze(y, axis++);
    } else {
      const Tensor& t = std::get<Tensor>(all[k].value);
      if (t.dtype() != DType::u8) {
        ids.push_back({axis, entry, t.shape(), ids_of("index", t, y.dim(axis))});
        ++axis;
        continue;
      }
      check(t.rank() > 0, "index", "a mask needs at least one axis");
      for (int a = 0; a < t.rank(); ++a)
        check(t.dim(a) == y.dim(axis + a), "index", [&] {
          return str("the mask ", t.shape(), " does not fit axes ", axis, " to ", axis + t.rank() - 1, " of ",
                     y.shape(), "; its sizes must be theirs (masked_select() takes one that broadcasts)");
        });
      for (Positions& list : places(t)) {
        const auto count = static_cast<int64_t>(list.size());
        ids.push_back({axis++, entry, {count}, std::move(list)});
      }
    }
  }
  if (ids.empty()) return y;
  // The axes of one mask are neighbours: consecutive entries, for the rule of at_ids.
  int before = -1, number = 0;
  for (AxisIds& one : ids) {
    const int entry = one.entry;
    number += &one == &ids.front() ? 0 : entry == before ? 1 : entry - before;
    before = entry;
    one.entry = number;
  }
  return at_ids("index", y, ids);
}

Tensor index_put(const Tensor& x, const std::vector<Index>& at, const Tensor& values) {
  const CalledOp called("index_put");
  check_same("index_put", x, values);
  const auto [positions, shape] = positions_of(x, at);
  return replaced(x, positions, expand(values, shape));
}

Tensor index_add(const Tensor& x, const std::vector<Index>& at, const Tensor& values) {
  const CalledOp called("index_add");
  check_float("index_add", x);
  check_same("index_add", x, values);
  const auto [positions, shape] = positions_of(x, at);
  return added(x, positions, expand(values, shape));
}

Tensor index_select(const Tensor& x, const Tensor& ids, int axis) {
  const CalledOp called("index_select");
  check(ids.rank() == 1, "index_select", [&] { return str("needs ids (k) for an axis, got ", ids.shape()); });
  const int a = normal_axis(axis, x.rank(), "index_select");
  return entries("index_select", x, a, ids_of("index_select", ids, x.dim(a)));
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
  return replaced(x, along("scatter", x.shape(), ids, a), expand(values, ids.shape()));
}
Tensor scatter_add(const Tensor& x, const Tensor& ids, const Tensor& values, int axis) {
  const CalledOp called("scatter_add");
  check_float("scatter_add", x);
  check_same("scatter_add", x, values);
  const int a = normal_axis(axis, x.rank(), "scatter_add");
  check_ids_of("scatter_add", x, ids, a);
  return added(x, along("scatter_add", x.shape(), ids, a), expand(values, ids.shape()));
}

Tensor take(const Tensor& x, const Tensor& ids) {
  const CalledOp called("take");
  return index_select(flat(x), on(x.device(), ids_of("take", ids, x.numel()), ids.shape()));
}

Tensor nonzero(const Tensor& x) {
  const std::vector<Positions> axes = places(x);
  const auto count = axes.empty() ? int64_t{0} : static_cast<int64_t>(axes[0].size());
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
  const Positions where_to = places(mask.expanded(x.shape()).contiguous().reshaped({x.numel()}))[0];
  const auto count = static_cast<int64_t>(where_to.size());
  check(values.numel() >= count, "masked_scatter", [&] {
    return str("the mask has ", count, " places, the values ", values.numel(), " elements; give at least as many");
  });
  return replaced(x, where_to, slice(flat(values), 0, 0, count));
}

}  // namespace braid
