// Shape operations: views where the layout allows. The gradient of a view is the inverse view of the gradient.
#include "braid/autograd/detail/check.h"
#include "braid/autograd/ops.h"
#include "braid/autograd/saved.h"

namespace braid {

namespace {

// Axis i of the result is axis order[i] of x.
Tensor permuted(const Tensor& x, const Shape& order) {
  Shape shape = x.shape();
  Strides strides = x.strides();
  for (int i = 0; i < order.rank(); ++i) {
    const auto axis = static_cast<int>(order[i]);
    shape[i] = x.dim(axis);
    strides[i] = x.strides()[axis];
  }
  return x.view(shape, strides, 0);
}

// x with zeros before and behind it along an axis, of shape `to`.
Tensor padded(const Tensor& x, const Shape& to, int axis, int64_t begin) {
  const auto zeros_of = [&](int64_t size) {
    Shape shape = to;
    shape[axis] = size;
    return zeros(shape, x.dtype(), x.device());
  };
  return concat({zeros_of(begin), x, zeros_of(to[axis] - begin - x.dim(axis))}, axis);
}

}  // namespace

Tensor contiguous(const Tensor& x) {
  if (x.is_contiguous()) return x;
  return record("contiguous", x.detach().clone(), {x}, differentiable([](const Tensor& dy) -> Grads { return {dy}; }));
}

Tensor reshape(const Tensor& x, const Shape& shape) {
  Tensor y = record("reshape", x.detach().contiguous().reshaped(shape), {x},
                    differentiable([from = x.shape()](const Tensor& dy) -> Grads { return {reshape(dy, from)}; }));
  return recomputable_view(x, std::move(y),
                           [shape](const Tensor& again) { return again.contiguous().reshaped(shape); });
}

Tensor transpose(const Tensor& x, int axis0, int axis1) {
  return record("transpose", x.detach().transposed(axis0, axis1), {x},
                differentiable([=](const Tensor& dy) -> Grads { return {transpose(dy, axis0, axis1)}; }));
}

// Axis i of y is axis axes[i] of x.
Tensor permute(const Tensor& x, Axes axes) {
  Tensor y = x.detach().permuted(axes);
  Shape order, back = y.shape();
  for (int axis : axes) order.push_back(normal_axis(axis, x.rank(), "permute"));
  for (int i = 0; i < order.rank(); ++i) back[static_cast<int>(order[i])] = i;
  y = record("permute", y, {x}, differentiable([back](const Tensor& dy) -> Grads {
               std::vector<int> inverse;
               for (int i = 0; i < back.rank(); ++i) inverse.push_back(static_cast<int>(back[i]));
               return {permute(dy, inverse)};
             }));
  return recomputable_view(x, std::move(y), [order](const Tensor& again) { return permuted(again, order); });
}

// Every repeated element collects the gradients of its copies.
Tensor expand(const Tensor& x, const Shape& shape) {
  return record("expand", x.detach().expanded(shape), {x},
                differentiable([from = x.shape()](const Tensor& dy) -> Grads { return {sum_to(dy, from)}; }));
}

Tensor squeeze(const Tensor& x, int axis) {
  int at = normal_axis(axis, x.rank(), "squeeze");
  return record("squeeze", x.detach().squeezed(at), {x},
                differentiable([at](const Tensor& dy) -> Grads { return {unsqueeze(dy, at)}; }));
}

Tensor unsqueeze(const Tensor& x, int axis) {
  int at = normal_axis(axis, x.rank() + 1, "unsqueeze");
  return record("unsqueeze", x.detach().unsqueezed(at), {x},
                differentiable([at](const Tensor& dy) -> Grads { return {squeeze(dy, at)}; }));
}

// y = x[..., begin:end, ...]   dx = 0 outside, dy inside
Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t end) {
  int at = normal_axis(axis, x.rank(), "slice");
  return record("slice", x.detach().sliced(at, begin, end), {x},
                differentiable([=, from = x.shape()](const Tensor& dy) -> Grads {
                  if (recording()) return {padded(dy, from, at, begin)};
                  Tensor dx = empty(from, dy.dtype(), dy.device());
                  dx.sliced(at, 0, begin).fill(0);
                  dx.sliced(at, begin, end).copy_(dy);
                  dx.sliced(at, end, from[at]).fill(0);
                  return {dx};
                }));
}

// The gradients of the parts are the parts of the gradient.
Tensor concat(const std::vector<Tensor>& xs, int axis) {
  check(!xs.empty(), "concat", "needs at least one tensor");
  int at = normal_axis(axis, xs[0].rank(), "concat");
  Shape shape = xs[0].shape();
  shape[at] = 0;
  std::vector<int64_t> sizes;
  for (const Tensor& x : xs) {
    check_same("concat", xs[0], x);
    bool same = x.rank() == shape.rank();
    for (int a = 0; same && a < shape.rank(); ++a) same = a == at || x.dim(a) == shape[a];
    check(same, "concat",
          [&] { return str("shapes ", xs[0].shape(), " and ", x.shape(), " differ outside axis ", axis); });
    sizes.push_back(x.dim(at));
    shape[at] += x.dim(at);
  }
  Tensor y = empty(shape, xs[0].dtype(), xs[0].device());
  int64_t begin = 0;
  for (const Tensor& x : xs) {
    y.sliced(at, begin, begin + x.dim(at)).copy_(x);
    begin += x.dim(at);
  }
  return record("concat", y, xs, differentiable(without_tensors([at, sizes](const Tensor& dy) -> Grads {
                  Grads parts;
                  int64_t from = 0;
                  for (int64_t size : sizes) {
                    parts.push_back(slice(dy, at, from, from + size));
                    from += size;
                  }
                  return parts;
                })));
}

Tensor stack(const std::vector<Tensor>& xs, int axis) {
  const CalledOp called("stack");
  check(!xs.empty(), "stack", "needs at least one tensor");
  const int at = normal_axis(axis, xs[0].rank() + 1, "stack");
  std::vector<Tensor> parts;
  for (const Tensor& x : xs) {
    check(x.shape() == xs[0].shape(), "stack", [&] {
      return str("shapes ", xs[0].shape(), " and ", x.shape(), " differ; concat() joins along an axis whose sizes may");
    });
    parts.push_back(unsqueeze(x, at));
  }
  return concat(parts, at);
}

// Views. The gradient of x is the concatenation of the parts' gradients, 0 for an unused part.
std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int axis) {
  int at = normal_axis(axis, x.rank(), "split");
  std::vector<Tensor> parts;
  int64_t begin = 0;
  bool fits = !sizes.empty();
  for (int64_t size : sizes) fits = fits && size >= 0 && size <= x.dim(at) - begin && (begin += size, true);
  check(fits && begin == x.dim(at), "split", [&] {
    std::string list;
    for (int64_t size : sizes) list += str(list.empty() ? "" : ", ", size);
    return str("sizes ", list, " do not add up to axis ", axis, " of ", x.shape());
  });
  begin = 0;
  for (int64_t size : sizes) {
    parts.push_back(x.detach().sliced(at, begin, begin + size));
    begin += size;
  }
  return record_many("split", parts, {x},
                     differentiable(without_tensors([at, sizes, from = x.shape(), dtype = x.dtype(),
                                                     device = x.device()](const std::vector<Tensor>& dys) -> Grads {
                       if (recording()) {
                         Grads all;
                         Shape part = from;
                         for (size_t i = 0; i < sizes.size(); ++i) {
                           part[at] = sizes[i];
                           all.push_back(dys[i] ? dys[i] : zeros(part, dtype, device));
                         }
                         return {concat(all, at)};
                       }
                       Tensor dx = empty(from, dtype, device);
                       int64_t start = 0;
                       for (size_t i = 0; i < sizes.size(); ++i) {
                         Tensor part = dx.sliced(at, start, start + sizes[i]);
                         if (dys[i])
                           part.copy_(dys[i]);
                         else
                           part.fill(0);
                         start += sizes[i];
                       }
                       return {dx};
                     })));
}

}  // namespace braid
