// The order and the repetition of entries, and padding.
#include <algorithm>
#include <cstdlib>

#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/entries.h"
#include "braid/autograd/manipulate.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

// x as (before, the axis, behind), so that another axis fits into any rank.
Shape around(const Shape& shape, int axis) {
  Shape three{1, shape[axis], 1};
  for (int a = 0; a < shape.rank(); ++a)
    if (a != axis) three[a < axis ? 0 : 2] *= shape[a];
  return three;
}

int64_t modulo(int64_t i, int64_t n) { return (i % n + n) % n; }

// The index of the entry that stands at place i, which may lie outside of [0, n).
int64_t padded_index(Padding padding, int64_t i, int64_t n) {
  if (padding == Padding::replicate) return std::clamp(i, int64_t{0}, n - 1);
  if (padding == Padding::circular) return modulo(i, n);
  if (n == 1) return 0;
  const int64_t there_and_back = modulo(i, 2 * (n - 1));
  return std::min(there_and_back, 2 * (n - 1) - there_and_back);
}

Tensor pad_axis(const Tensor& x, const AxisPadding& amount, Padding padding, double value) {
  const int axis = normal_axis(amount.axis, x.rank(), "pad");
  const int64_t n = x.dim(axis);
  check(amount.before >= 0 && amount.after >= 0, "pad", [&] {
    return str("needs amounts of at least 0, got ", amount.before, " and ", amount.after, "; slice() cuts entries off");
  });
  if (amount.before == 0 && amount.after == 0) return x;
  if (padding != Padding::constant) {
    check(n > 0, "pad", [&] { return str("axis ", amount.axis, " of ", x.shape(), " has no entry to pad with"); });
    std::vector<int64_t> ids;
    for (int64_t i = -amount.before; i < n + amount.after; ++i) ids.push_back(padded_index(padding, i, n));
    return entries("pad", x, axis, ids);
  }
  const auto filled = [&](int64_t size) {
    Shape shape = x.shape();
    shape[axis] = size;
    return full(shape, value, x.dtype(), x.device());
  };
  return concat({filled(amount.before), x, filled(amount.after)}, axis);
}

}  // namespace

Tensor flip(const Tensor& x, int axis) {
  const int a = normal_axis(axis, x.rank(), "flip");
  return stepped("flip", x, a, x.dim(a) - 1, -1, x.dim(a));
}

Tensor flip(const Tensor& x, Axes axes) {
  Tensor y = x;
  unsigned seen = 0;
  for (const int axis : axes) {
    const int a = normal_axis(axis, x.rank(), "flip");
    check(!(seen >> a & 1u), "flip", [&] { return str("axis ", axis, " stands twice; name each axis once"); });
    seen |= 1u << a;
    y = flip(y, a);
  }
  return y;
}

Tensor roll(const Tensor& x, int64_t shift, int axis) {
  const CalledOp called("roll");
  const int a = normal_axis(axis, x.rank(), "roll");
  const int64_t n = x.dim(a), front = n == 0 ? 0 : modulo(shift, n);
  if (front == 0) return x;
  return concat({slice(x, a, n - front, n), slice(x, a, 0, n - front)}, a);
}

Tensor roll(const Tensor& x, const std::vector<int64_t>& shifts, Axes axes) {
  check(shifts.size() == axes.size(), "roll",
        [&] { return str("needs one shift per axis, got ", shifts.size(), " and ", axes.size()); });
  Tensor y = x;
  for (size_t i = 0; i < shifts.size(); ++i) y = roll(y, shifts[i], axes[i]);
  return y;
}

// A quarter turn is a transposition and a reversal.
Tensor rot90(const Tensor& x, int64_t turns, int axis0, int axis1) {
  const CalledOp called("rot90");
  const int a = normal_axis(axis0, x.rank(), "rot90"), b = normal_axis(axis1, x.rank(), "rot90");
  check(a != b, "rot90", [&] { return str("needs two axes of ", x.shape(), ", got ", axis0, " and ", axis1); });
  switch (modulo(turns, 4)) {
    case 1:
      return transpose(flip(x, b), a, b);
    case 2:
      return flip(flip(x, a), b);
    case 3:
      return flip(transpose(x, a, b), b);
    default:
      return x;
  }
}

Tensor repeat(const Tensor& x, int64_t count, int axis) {
  const CalledOp called("repeat");
  const int a = normal_axis(axis, x.rank(), "repeat");
  check(count >= 0, "repeat", [&] { return str("needs a count of at least 0, got ", count); });
  const Shape three = around(x.shape(), a);
  Shape shape = x.shape();
  shape[a] *= count;
  return reshape(expand(reshape(x, {three[0], three[1], 1, three[2]}), {three[0], three[1], count, three[2]}), shape);
}

Tensor repeat(const Tensor& x, const std::vector<int64_t>& counts, int axis) {
  const int a = normal_axis(axis, x.rank(), "repeat");
  check(std::ssize(counts) == x.dim(a), "repeat",
        [&] { return str("needs one count per entry of axis ", axis, " of ", x.shape(), ", got ", counts.size()); });
  std::vector<int64_t> ids;
  for (size_t i = 0; i < counts.size(); ++i) {
    check(counts[i] >= 0, "repeat", [&] { return str("needs counts of at least 0, got ", counts[i]); });
    ids.insert(ids.end(), static_cast<size_t>(counts[i]), static_cast<int64_t>(i));
  }
  return entries("repeat", x, a, ids);
}

Tensor tile(const Tensor& x, const std::vector<int64_t>& counts) {
  const CalledOp called("tile");
  const int rank = std::max(x.rank(), static_cast<int>(counts.size()));
  check(rank <= Shape::max_rank, "tile",
        [&] { return str("needs at most ", Shape::max_rank, " counts, got ", counts.size()); });
  Shape shape;
  for (int a = x.rank(); a < rank; ++a) shape.push_back(1);
  for (const int64_t n : x.shape()) shape.push_back(n);
  Tensor y = reshape(x, shape);
  for (size_t i = 0; i < counts.size(); ++i) {
    check(counts[i] >= 0, "tile", [&] { return str("needs counts of at least 0, got ", counts[i]); });
    if (counts[i] == 1) continue;
    const int a = rank - static_cast<int>(counts.size() - i);
    const Shape three = around(shape, a);
    shape[a] *= counts[i];
    const int64_t inner = three[1] * three[2];
    y = reshape(expand(reshape(y, {three[0], 1, inner}), {three[0], counts[i], inner}), shape);
  }
  return y;
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  const CalledOp called("broadcast_to");
  return expand(x, shape);
}

std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& xs) {
  const CalledOp called("broadcast_tensors");
  Shape shape;
  for (const Tensor& x : xs) shape = broadcast(shape, x.shape(), "broadcast_tensors");
  std::vector<Tensor> ys;
  for (const Tensor& x : xs) ys.push_back(expand(x, shape));
  return ys;
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& xs, MeshOrder order) {
  const CalledOp called("meshgrid");
  check(!xs.empty() && std::ssize(xs) <= Shape::max_rank, "meshgrid",
        [&] { return str("needs 1 to ", Shape::max_rank, " vectors, got ", xs.size()); });
  Shape shape;
  for (const Tensor& x : xs) {
    check(x.rank() == 1, "meshgrid", [&] { return str("needs vectors, got ", x.shape()); });
    shape.push_back(x.dim(0));
  }
  std::vector<Tensor> ys;
  for (size_t i = 0; i < xs.size(); ++i) {
    Shape along;
    for (int a = 0; a < shape.rank(); ++a) along.push_back(a == static_cast<int>(i) ? shape[a] : 1);
    ys.push_back(expand(reshape(xs[i], along), shape));
    if (order == MeshOrder::xy && shape.rank() > 1) ys.back() = transpose(ys.back(), 0, 1);
  }
  return ys;
}

Tensor pad(const Tensor& x, const std::vector<AxisPadding>& amounts, Padding padding, double value) {
  const CalledOp called("pad");
  Tensor y = x;
  unsigned seen = 0;
  for (const AxisPadding& amount : amounts) {
    const int a = normal_axis(amount.axis, x.rank(), "pad");
    check(!(seen >> a & 1u), "pad", [&] { return str("axis ", amount.axis, " stands twice"); });
    seen |= 1u << a;
    y = pad_axis(y, amount, padding, value);
  }
  return y;
}

}  // namespace braid
