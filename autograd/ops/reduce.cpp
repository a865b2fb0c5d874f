// Sums, means, variances, logarithms of sums, the sum of a product.
#include <cmath>
#include <limits>

#include "braid/autograd/detail/axes.h"
#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/mul_reduce_to.h"
#include "braid/autograd/ops.h"
#include "braid/autograd/reductions.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"

namespace braid {

namespace {

using axes::dropped_shape;
using axes::kept_shape;

Tensor summed(const Tensor& x, const Shape& kept, DType type) {
  Tensor y = empty(kept, type, x.device());
  backend(x.device()).reduce.axes(ReduceOp::sum, x.detach(), y);
  return y;
}

// y = sum of x over the axes where `kept` has size 1, in the shape `result`; i64 for integers.   dx = dy repeated
Tensor sum_kept(const char* op, const Tensor& x, const Shape& kept, const Shape& result) {
  Tensor y = summed(x, kept, is_float(x.dtype()) ? x.dtype() : DType::i64).reshaped(result);
  return record(op, y, {x}, differentiable([from = x.shape(), kept](const Tensor& dy) -> Grads {
                  return {expand(reshape(dy, kept), from)};
                }));
}

// y = sum / n. The sum of 16-bit values is f32: in 16 bits it would round twice, or overflow. The mean of nothing is
// NaN. dx = dy / n repeated
Tensor mean_kept(const Tensor& x, const Shape& kept, const Shape& result) {
  check_float("mean", x);
  if (x.numel() == 0) {
    const Tensor y = full(result, std::numeric_limits<double>::quiet_NaN(), x.dtype(), x.device());
    return record("mean", y, {x}, differentiable([like = zeros_like(x)](const Tensor&) -> Grads { return {like}; }));
  }
  const double n = static_cast<double>(x.numel()) / static_cast<double>(numel(kept));
  Tensor y = (summed(x, kept, accumulate_type(x.dtype())) / n).to(x.dtype()).reshaped(result);
  return record("mean", y, {x}, differentiable([=, from = x.shape()](const Tensor& dy) -> Grads {
                  return {expand(reshape(dy / n, kept), from)};
                }));
}

// y = sum((x - m)^2) / (n - correction), m the mean over the n elements that are reduced
// dx = 2 (x - m) dy / (n - correction)
// 16-bit values are computed in f32 and rounded once. No degree of freedom is left where n <= correction: NaN or Inf.
Tensor var_kept(const Tensor& x, Axes axes, bool keep, int64_t correction) {
  check_float("var", x);
  const Shape kept = kept_shape("var", x.shape(), axes), result = keep ? kept : dropped_shape(x.shape(), axes);
  const double n = static_cast<double>(x.numel()) / static_cast<double>(numel(kept));
  const double degrees = std::fmax(0, n - static_cast<double>(correction));
  const DType type = accumulate_type(x.dtype());
  if (x.numel() == 0) {
    const Tensor y = full(result, std::numeric_limits<double>::quiet_NaN(), x.dtype(), x.device());
    return record("var", y, {x}, differentiable([like = zeros_like(x)](const Tensor&) -> Grads { return {like}; }));
  }
  const Tensor values = x.detach().to(type);
  const Tensor m = summed(values, kept, type) / n;
  const Tensor centered = sub(values, m);
  const Tensor y = (mul_reduce_to(centered, centered, kept) / degrees).to(x.dtype()).reshaped(result);
  const std::vector<int> list(axes.begin(), axes.end());
  return record("var", y, {x}, differentiable([=](const Tensor& dy) -> Grads {
                  if (recording()) {
                    const Tensor wide = cast(x, type), slope = sub(wide, mean(wide, list, true)) / (degrees / 2);
                    return {cast(mul(slope, reshape(cast(dy, type), kept)), x.dtype())};
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

Tensor var(const Tensor& x) { return var_kept(x, axes::all_of(x), false, 1); }

Tensor var(const Tensor& x, Axes axes, int64_t correction, bool keep) { return var_kept(x, axes, keep, correction); }

namespace {

double largest_of(DType type) {
  return type == DType::f64 ? std::numeric_limits<double>::max() : double{std::numeric_limits<float>::max()};
}

// y = log(sum(exp(x - m))) + m, m the largest element   dx = dy exp(x - y)
// m is clamped to finite values, so that a row of only -inf gives -inf and +inf gives +inf. 16-bit values are computed
// in f32 and rounded once.
Tensor log_sum(const Tensor& x, Axes axes, bool keep) {
  const CalledOp called("logsumexp");
  check_float("logsumexp", x);
  const Shape kept = kept_shape("logsumexp", x.shape(), axes), result = keep ? kept : dropped_shape(x.shape(), axes);
  const DType type = accumulate_type(x.dtype());
  const double largest = largest_of(type);
  if (x.numel() == 0 && numel(kept) > 0)
    fail("logsumexp", str("needs at least one element to reduce, got ", x.shape()));
  const int only = axes.size() == 1 ? normal_axis(axes[0], x.rank(), "logsumexp") : -1;
  const auto& kernel = backend(x.device()).softmax.log_sum;
  Tensor y, wide;
  if (kernel && only >= 0 && only == x.rank() - 1 && x.numel() > 0) {
    y = empty(dropped_shape(x.shape(), axes), x.dtype(), x.device());
    kernel(x.detach().contiguous(), y);
    y = y.reshaped(result);
  } else {
    const Tensor values = x.detach().to(type);
    Tensor m = empty(kept, type, x.device());
    backend(x.device()).reduce.axes(ReduceOp::max, values, m);
    m = clamp(m, -largest, largest);
    wide = add(log(sum(exp(sub(values, m)), axes, true)), m);
    y = wide.to(x.dtype()).reshaped(result);
  }
  const std::vector<int> list(axes.begin(), axes.end());
  return record("logsumexp", y, {x}, differentiable([=](const Tensor& dy) -> Grads {
                  if (only >= 0 && !recording()) return {mul(softmax(x, only), reshape(dy, kept))};
                  // Again as a function of x, where the derivative itself is differentiated. exp(-inf - -inf) would be
                  // NaN: such a row has no gradient.
                  const Tensor again = cast(x, type);
                  const Tensor log_sums = recording() ? reshape(logsumexp(again, list, true), kept) : wide;
                  const Tensor slope =
                      exp(sub(again, clamp(log_sums, -largest, std::numeric_limits<double>::infinity())));
                  return {cast(mul(slope, cast(reshape(dy, kept), type)), x.dtype())};
                }));
}

}  // namespace

Tensor logsumexp(const Tensor& x, int axis, bool keep) { return log_sum(x, {axis}, keep); }
Tensor logsumexp(const Tensor& x, Axes axes, bool keep) { return log_sum(x, axes, keep); }
Tensor logsumexp(const Tensor& x) { return log_sum(x, axes::all_of(x), false); }

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

}  // namespace braid
