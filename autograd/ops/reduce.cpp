// Reductions (sums, means, variances, extremes, the sum of a product) and the cumulative sum.
#include <cmath>
#include <limits>

#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/mul_reduce_to.h"
#include "braid/autograd/detail/scatter_rows.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"

namespace braid {

namespace {

// The shape with size 1 along `axes`.
Shape kept_shape(const char* op, const Shape& shape, Axes axes) {
  Shape kept = shape;
  unsigned seen = 0;
  for (int axis : axes) {
    int a = normal_axis(axis, shape.rank(), op);
    check(!(seen >> a & 1u), op, [&] { return str("axis ", axis, " stands twice"); });
    seen |= 1u << a;
    kept[a] = 1;
  }
  return kept;
}

// `shape` without `axes`.
Shape dropped_shape(const Shape& shape, Axes axes) {
  unsigned drop = 0;
  for (int axis : axes) drop |= 1u << (axis < 0 ? axis + shape.rank() : axis);
  Shape left;
  for (int a = 0; a < shape.rank(); ++a) {
    if (!(drop >> a & 1u)) left.push_back(shape[a]);
  }
  return left;
}

Tensor reduced(const char* op, ReduceOp kind, const Tensor& x, const Shape& kept, DType type) {
  check_float(op, x);
  Tensor y = empty(kept, type, x.device());
  backend(x.device()).reduce.axes(kind, x, y);
  return y;
}

// y = sum of x over the axes where `kept` has size 1, in the shape `result`.   dx = dy repeated
Tensor sum_kept(const char* op, const Tensor& x, const Shape& kept, const Shape& result) {
  Tensor y = reduced(op, ReduceOp::sum, x, kept, x.dtype()).reshaped(result);
  return record(op, y, {x}, differentiable([from = x.shape(), kept](const Tensor& dy) -> Grads {
                  return {expand(reshape(dy, kept), from)};
                }));
}

// y = sum / n. The sum of 16-bit values is f32: in 16 bits it would round twice, or overflow. The mean of nothing is
// NaN. dx = dy / n repeated
Tensor mean_kept(const Tensor& x, const Shape& kept, const Shape& result) {
  const double n = static_cast<double>(x.numel()) / static_cast<double>(numel(kept));
  DType type = accumulate_type(x.dtype());
  Tensor y = (reduced("mean", ReduceOp::sum, x, kept, type) / n).to(x.dtype()).reshaped(result);
  return record("mean", y, {x}, differentiable([=, from = x.shape()](const Tensor& dy) -> Grads {
                  return {expand(reshape(dy / n, kept), from)};
                }));
}

// y = sum((x - m)^2) / (n - correction), m the mean over the n elements that are reduced   dx = 2 (x - m) dy / (n -
// correction) 16-bit values are computed in f32 and rounded once. No degree of freedom is left where n <= correction:
// NaN or Inf.
Tensor var_kept(const Tensor& x, const Shape& kept, const Shape& result, int64_t correction) {
  check_float("var", x);
  const double n = static_cast<double>(x.numel()) / static_cast<double>(numel(kept));
  const double degrees = std::fmax(0, n - static_cast<double>(correction));
  const DType type = accumulate_type(x.dtype());
  const Tensor values = x.detach().to(type);
  const Tensor m = reduced("var", ReduceOp::sum, values, kept, type) / n;
  const Tensor centered = sub(values, m);
  const Tensor y = (mul_reduce_to(centered, centered, kept) / degrees).to(x.dtype()).reshaped(result);
  return record("var", y, {x}, differentiable([=](const Tensor& dy) -> Grads {
                  if (recording()) {
                    const Tensor wide = cast(x, type),
                                 centered_again = sub(wide, sum_kept("var", wide, kept, kept) / n);
                    return {cast(mul(centered_again / (degrees / 2), reshape(cast(dy, type), kept)), x.dtype())};
                  }
                  const Tensor slope = sub(x.detach().to(type), m) / (degrees / 2);
                  return {mul(slope, dy.to(type).contiguous().reshaped(kept)).to(x.dtype())};
                }));
}

Shape all_ones(int rank) {
  Shape shape;
  for (int a = 0; a < rank; ++a) shape.push_back(1);
  return shape;
}

// y = max or min of x over one axis   dx = dy at the first element that is equal to y, else 0
Tensor extreme(const char* op, ReduceOp kind, const Tensor& x, int axis, bool keep) {
  int a = normal_axis(axis, x.rank(), op);
  check(x.dim(a) > 0, op, [&] { return str("axis ", axis, " of ", x.shape(), " is empty"); });
  Shape kept = kept_shape(op, x.shape(), {a}), dropped = dropped_shape(x.shape(), {a});
  Tensor y = reduced(op, kind, x, kept, x.dtype()).reshaped(keep ? kept : dropped);
  if (!recording({x})) return y;
  Tensor last = x.detach().transposed(a, -1), ids;
  ids = argmax(kind == ReduceOp::max ? last : neg(last));
  return record(op, y, {x}, differentiable([=, shape = last.shape()](const Tensor& dy) -> Grads {
                  if (recording()) {
                    const Tensor g = reshape(transpose(reshape(dy, kept), a, -1), ids.shape());
                    return {transpose(scatter_rows(g, ids, shape), a, -1)};
                  }
                  Tensor dx = empty(shape, dy.dtype(), dy.device());
                  Tensor g = dy.contiguous().reshaped(kept).transposed(a, -1).contiguous().reshaped(ids.shape());
                  backend(dy.device()).index.scatter(g, ids, dx);
                  return {dx.transposed(a, -1)};
                }));
}

}  // namespace

Tensor mul_reduce_to(const Tensor& x, const Tensor& y, const Shape& shape) {
  Shape common = broadcast(x.shape(), y.shape(), "sum_product"), kept = common;
  int shift = common.rank() - shape.rank();
  for (int a = 0; a < common.rank(); ++a) {
    if (a < shift || shape[a - shift] == 1) kept[a] = 1;
  }
  Tensor sum = empty(kept, x.dtype(), x.device());
  if (kept == common)
    backend(x.device()).pointwise.binary(BinaryOp::mul, x.expanded(common), y.expanded(common), sum);
  else
    backend(x.device()).reduce.sum_product(x.expanded(common), y.expanded(common), sum);
  Shape reached;
  for (int a = 0; a < shape.rank(); ++a) reached.push_back(kept[a + shift]);
  return sum.reshaped(reached).expanded(shape);
}

Tensor product_to(const Tensor& x, const Tensor& y, const Shape& shape) {
  if (!recording()) return mul_reduce_to(x, y, shape);
  const Tensor product = mul(x, y);
  return sum_to(expand(product, broadcast(product.shape(), shape, "sum_product")), shape);
}

Tensor sum(const Tensor& x) { return sum_kept("sum", x, all_ones(x.rank()), {}); }

Tensor sum(const Tensor& x, Axes axes, bool keep) {
  Shape kept = kept_shape("sum", x.shape(), axes);
  return sum_kept("sum", x, kept, keep ? kept : dropped_shape(x.shape(), axes));
}

Tensor mean(const Tensor& x) { return mean_kept(x, all_ones(x.rank()), {}); }

Tensor mean(const Tensor& x, Axes axes, bool keep) {
  Shape kept = kept_shape("mean", x.shape(), axes);
  return mean_kept(x, kept, keep ? kept : dropped_shape(x.shape(), axes));
}

Tensor var(const Tensor& x) { return var_kept(x, all_ones(x.rank()), {}, 1); }

Tensor var(const Tensor& x, Axes axes, int64_t correction, bool keep) {
  Shape kept = kept_shape("var", x.shape(), axes);
  return var_kept(x, kept, keep ? kept : dropped_shape(x.shape(), axes), correction);
}

// y = log(sum(exp(x - m))) + m, m the largest element   dx = dy softmax(x)
// m is clamped to finite values, so that a row of only -inf gives -inf and +inf gives +inf. 16-bit values are computed
// in f32 and rounded once.
Tensor logsumexp(const Tensor& x, int axis, bool keep) {
  const CalledOp called("logsumexp");
  check_float("logsumexp", x);
  const int a = normal_axis(axis, x.rank(), "logsumexp");
  const Shape kept = kept_shape("logsumexp", x.shape(), {a});
  const DType type = accumulate_type(x.dtype());
  const Tensor values = x.detach().to(type);
  const double largest =
      type == DType::f64 ? std::numeric_limits<double>::max() : double{std::numeric_limits<float>::max()};
  const Tensor m = clamp(max(values, a, true), -largest, largest);
  const Tensor y = add(log(sum(exp(sub(values, m)), {a}, true)), m).to(x.dtype());
  return record("logsumexp", keep ? y : y.squeezed(a), {x}, differentiable([=](const Tensor& dy) -> Grads {
                  return {mul(softmax(recording() ? x : x.detach(), a), reshape(dy, kept))};
                }));
}

namespace {
// The sums along the last axis from either end; each is the other's adjoint.
Tensor scan(const Tensor& x, bool reverse) {
  Tensor y = empty_like(x);
  backend(x.device()).scan.cumsum(x.detach().contiguous(), reverse, y);
  return record("cumsum", y, {x}, differentiable([=](const Tensor& dy) -> Grads { return {scan(dy, !reverse)}; }));
}
}  // namespace

// y_i = x_0 + ... + x_i along the axis   dx_i = dy_i + ... + dy_last
Tensor cumsum(const Tensor& x, int axis) {
  check_float("cumsum", x);
  const int a = normal_axis(axis, x.rank(), "cumsum");
  if (a != x.rank() - 1) return transpose(cumsum(transpose(x, a, -1)), a, -1);
  return scan(x, false);
}

Tensor max(const Tensor& x, int axis, bool keep) { return extreme("max", ReduceOp::max, x, axis, keep); }
Tensor min(const Tensor& x, int axis, bool keep) { return extreme("min", ReduceOp::min, x, axis, keep); }

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  check(broadcast(shape, x.shape(), "sum_to") == x.shape(), "sum_to",
        [&] { return str("shape ", shape, " does not repeat to ", x.shape()); });
  Shape kept = x.shape();
  int shift = x.rank() - shape.rank();
  for (int a = 0; a < x.rank(); ++a) {
    if (a < shift || shape[a - shift] == 1) kept[a] = 1;
  }
  return sum_kept("sum_to", x, kept, shape);
}

// z = sum of x y   dx = dz y, dy = dz x, each summed over the axes along which the factor was repeated
Tensor sum_product(const Tensor& x, const Tensor& y, Axes axes) {
  check_float("sum_product", x);
  check_same("sum_product", x, y);
  Shape common = broadcast(x.shape(), y.shape(), "sum_product");
  Tensor z = empty(kept_shape("sum_product", common, axes), x.dtype(), x.device());
  backend(x.device()).reduce.sum_product(x.detach().expanded(common), y.detach().expanded(common), z);
  Tensor keep_x = requires_grad(y) ? x : Tensor(), keep_y = requires_grad(x) ? y : Tensor();
  return record(
      "sum_product", z, {x, y}, differentiable([=, sx = x.shape(), sy = y.shape()](const Tensor& dz) -> Grads {
        return {keep_y ? product_to(dz, keep_y, sx) : Tensor(), keep_x ? product_to(dz, keep_x, sy) : Tensor()};
      }));
}

Tensor argmax(const Tensor& x) {
  no_gradient("argmax", x);
  check_float("argmax", x);
  check(x.rank() >= 1, "argmax", [&] { return str("needs at least one axis, got ", x.shape()); });
  check(x.dim(-1) > 0, "argmax", [&] { return str("the last axis of ", x.shape(), " is empty"); });
  Tensor index = empty(dropped_shape(x.shape(), {-1}), DType::i64, x.device());
  backend(x.device()).order.argmax(x, index);
  return index;
}

}  // namespace braid
