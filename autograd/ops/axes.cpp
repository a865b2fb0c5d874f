// Names for the axes of a tensor, and its parts: composed of reshape, permute, concat and split.
#include <algorithm>

#include "braid/autograd/detail/check.h"
#include "braid/autograd/manipulate.h"

namespace braid {

namespace {

using AtLeast = Tensor (*)(const Tensor&);

Tensor joined_along(const char* op, const std::vector<Tensor>& xs, AtLeast at_least, int axis) {
  check(!xs.empty(), op, "needs at least one tensor");
  std::vector<Tensor> parts;
  for (const Tensor& x : xs) parts.push_back(at_least(x));
  return concat(parts, std::min(axis, parts[0].rank() - 1));
}

}  // namespace

Tensor flatten(const Tensor& x, int first, int last) {
  const CalledOp called("flatten");
  if (x.rank() == 0) return reshape(x, {1});
  const int a = normal_axis(first, x.rank(), "flatten"), b = normal_axis(last, x.rank(), "flatten");
  check(a <= b, "flatten", [&] { return str("axis ", first, " of ", x.shape(), " does not stand before ", last); });
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    if (i <= a || i > b)
      shape.push_back(x.dim(i));
    else
      shape[a] *= x.dim(i);
  }
  return reshape(x, shape);
}

Tensor unflatten(const Tensor& x, int axis, const Shape& sizes) {
  const CalledOp called("unflatten");
  const int a = normal_axis(axis, x.rank(), "unflatten");
  check(sizes.rank() >= 1 && x.rank() - 1 + sizes.rank() <= Shape::max_rank, "unflatten", [&] {
    return str("needs at least one size and at most ", Shape::max_rank, " axes in all, got ", sizes, " for axis ", axis,
               " of ", x.shape());
  });
  int64_t known = 1, inferred = 0;
  for (const int64_t n : sizes) n == -1 ? ++inferred : known *= n;
  const bool fits = inferred == 0 ? known == x.dim(a) : inferred == 1 && known > 0 && x.dim(a) % known == 0;
  check(fits, "unflatten", [&] { return str("sizes ", sizes, " do not make up axis ", axis, " of ", x.shape()); });
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != a) {
      shape.push_back(x.dim(i));
      continue;
    }
    for (const int64_t n : sizes) shape.push_back(n == -1 ? x.dim(a) / known : n);
  }
  return reshape(x, shape);
}

Tensor ravel(const Tensor& x) {
  const CalledOp called("ravel");
  return reshape(x, {x.numel()});
}

Tensor moveaxis(const Tensor& x, int from, int to) {
  const CalledOp called("moveaxis");
  const int a = normal_axis(from, x.rank(), "moveaxis"), b = normal_axis(to, x.rank(), "moveaxis");
  std::vector<int> order;
  for (int i = 0; i < x.rank(); ++i)
    if (i != a) order.push_back(i);
  order.insert(order.begin() + b, a);
  return permute(x, order);
}

Tensor swapaxes(const Tensor& x, int axis0, int axis1) {
  const CalledOp called("swapaxes");
  return transpose(x, axis0, axis1);
}

Tensor t(const Tensor& x) {
  const CalledOp called("t");
  check(x.rank() <= 2, "t", [&] { return str("needs at most two axes, got ", x.shape(), "; see transpose"); });
  return x.rank() < 2 ? x : transpose(x);
}

Tensor squeeze(const Tensor& x) {
  const CalledOp called("squeeze");
  Shape shape;
  for (const int64_t n : x.shape())
    if (n != 1) shape.push_back(n);
  if (shape.rank() == x.rank()) return x;
  Tensor y = x;
  for (int a = x.rank() - 1; a >= 0; --a)
    if (x.dim(a) == 1) y = squeeze(y, a);
  return y;
}

Tensor atleast_1d(const Tensor& x) { return x.rank() == 0 ? unsqueeze(x, 0) : x; }

Tensor atleast_2d(const Tensor& x) { return x.rank() < 2 ? unsqueeze(atleast_1d(x), 0) : x; }

Tensor atleast_3d(const Tensor& x) { return x.rank() < 3 ? unsqueeze(atleast_2d(x), 2) : x; }

Tensor hstack(const std::vector<Tensor>& xs) {
  const CalledOp called("hstack");
  return joined_along("hstack", xs, atleast_1d, 1);
}

Tensor vstack(const std::vector<Tensor>& xs) {
  const CalledOp called("vstack");
  return joined_along("vstack", xs, atleast_2d, 0);
}

Tensor dstack(const std::vector<Tensor>& xs) {
  const CalledOp called("dstack");
  return joined_along("dstack", xs, atleast_3d, 2);
}

Tensor narrow(const Tensor& x, int axis, int64_t begin, int64_t length) {
  const CalledOp called("narrow");
  const int a = normal_axis(axis, x.rank(), "narrow");
  const int64_t n = x.dim(a), from = begin < 0 ? begin + n : begin;
  check(from >= 0 && length >= 0 && from <= n && length <= n - from, "narrow",
        [&] { return str("axis ", axis, " of ", x.shape(), " does not have ", length, " entries from ", begin); });
  return slice(x, a, from, from + length);
}

std::vector<Tensor> unbind(const Tensor& x, int axis) {
  const CalledOp called("unbind");
  const int a = normal_axis(axis, x.rank(), "unbind");
  if (x.dim(a) == 0) return {};
  std::vector<Tensor> parts = split(x, std::vector<int64_t>(static_cast<size_t>(x.dim(a)), 1), a);
  for (Tensor& part : parts) part = squeeze(part, a);
  return parts;
}

std::vector<Tensor> chunk(const Tensor& x, int64_t count, int axis) {
  const CalledOp called("chunk");
  const int a = normal_axis(axis, x.rank(), "chunk");
  check(count >= 1, "chunk", [&] { return str("needs a count of at least 1, got ", count); });
  const int64_t n = x.dim(a), size = (n - 1) / count + 1;
  std::vector<int64_t> sizes;
  for (int64_t left = n; left > 0; left -= sizes.back()) sizes.push_back(std::min(size, left));
  return split(x, n == 0 ? std::vector<int64_t>{0} : sizes, a);
}

std::vector<Tensor> tensor_split(const Tensor& x, int64_t count, int axis) {
  const CalledOp called("tensor_split");
  const int a = normal_axis(axis, x.rank(), "tensor_split");
  check(count >= 1, "tensor_split", [&] { return str("needs a count of at least 1, got ", count); });
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < count; ++i) sizes.push_back(x.dim(a) / count + (i < x.dim(a) % count ? 1 : 0));
  return split(x, sizes, a);
}

std::vector<Tensor> split_at(const Tensor& x, const std::vector<int64_t>& places, int axis) {
  const CalledOp called("split_at");
  const int a = normal_axis(axis, x.rank(), "split_at");
  std::vector<int64_t> sizes;
  int64_t before = 0;
  for (const int64_t place : places) {
    check(place >= before && place <= x.dim(a), "split_at", [&] {
      return str("needs places from ", before, " to ", x.dim(a), " of axis ", axis, " of ", x.shape(), ", got ", place);
    });
    sizes.push_back(place - before);
    before = place;
  }
  sizes.push_back(x.dim(a) - before);
  return split(x, sizes, a);
}

}  // namespace braid
