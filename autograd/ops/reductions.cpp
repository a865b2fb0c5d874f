// Reductions composed of other ops: tests, counts, products, deviations, norms, sums without NaN.
#include "braid/autograd/reductions.h"

#include <cmath>
#include <limits>

#include "braid/autograd/detail/axes.h"
#include "braid/autograd/detail/check.h"
#include "braid/autograd/math.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// 1 where the mask has a 1 along the axes: its largest element (any), or its smallest (all).
Tensor test_over(const char* op, ReduceOp kind, const Tensor& x, Axes over, bool keep) {
  const CalledOp called(op);
  const Shape kept = axes::kept_shape(op, x.shape(), over);
  Tensor y = full(kept, kind == ReduceOp::min ? 1 : 0, DType::u8, x.device());
  if (x.numel() > 0) backend(x.device()).reduce.axes(kind, ne(x, 0), y);
  return y.reshaped(keep ? kept : axes::dropped_shape(x.shape(), over));
}

// The product of each row (..., n) -> (..., 1), as a tree of products of halves, whose derivative needs no division.
Tensor product_of_rows(Tensor x) {
  if (x.dim(-1) == 0) return sum(x, {-1}, true) + 1;  // of nothing: 1, and a part of the graph
  while (x.dim(-1) > 1) {
    const int64_t n = x.dim(-1), half = n / 2;
    const Tensor y = mul(slice(x, -1, 0, half), slice(x, -1, half, 2 * half));
    x = n % 2 == 0 ? y : concat({y, slice(x, -1, n - 1, n)}, -1);
  }
  return x;
}

// y = sqrt(x)   dx = dy / (2 y), 0 where y is 0
Tensor root(const Tensor& x) {
  if (!requires_grad(x)) return sqrt(x);
  const Tensor zero = eq(x, 0);
  return masked_fill(sqrt(masked_fill(x, zero, 1)), zero, 0);
}

// y = x^p for x >= 0   dx = p x^(p - 1) dy, 0 where x is 0
Tensor power(const Tensor& x, double p) {
  if (!requires_grad(x)) return pow(x, p);
  const Tensor zero = eq(x, 0);
  return masked_fill(pow(masked_fill(x, zero, 1), p), zero, 0);
}

}  // namespace

Tensor any(const Tensor& x, Axes axes, bool keep) { return test_over("any", ReduceOp::max, x, axes, keep); }
Tensor all(const Tensor& x, Axes axes, bool keep) { return test_over("all", ReduceOp::min, x, axes, keep); }
Tensor any(const Tensor& x) { return any(x, axes::all_of(x)); }
Tensor all(const Tensor& x) { return all(x, axes::all_of(x)); }

Tensor count_nonzero(const Tensor& x, Axes axes, bool keep) {
  const CalledOp called("count_nonzero");
  return sum(ne(x, 0), axes, keep);
}
Tensor count_nonzero(const Tensor& x) { return count_nonzero(x, axes::all_of(x)); }

// y = x_1 ... x_n   dx_i = dy times the product of the others
Tensor prod(const Tensor& x, Axes axes, bool keep) {
  const CalledOp called("prod");
  if (!is_float(x.dtype())) {
    const Shape kept = axes::kept_shape("prod", x.shape(), axes);
    Tensor y = empty(kept, DType::i64, x.device());
    backend(x.device()).reduce.axes(ReduceOp::prod, x, y);
    return y.reshaped(keep ? kept : axes::dropped_shape(x.shape(), axes));
  }
  if (axes.empty()) return reshape(x, x.shape());
  const axes::Rows rows("prod", x, axes);
  return rows.result(cast(product_of_rows(cast(rows.to_rows(x), accumulate_type(x.dtype()))), x.dtype()), keep);
}
Tensor prod(const Tensor& x) { return prod(x, axes::all_of(x)); }

Tensor stddev(const Tensor& x, Axes axes, int64_t correction, bool keep) {
  const CalledOp called("stddev");
  check_float("stddev", x);
  const Tensor wide = cast(x, accumulate_type(x.dtype())), v = var(wide, axes, correction, keep);
  if (x.numel() == 0) return cast(root(v), x.dtype());
  // The rounding of the mean leaves equal elements a variance, and the slopes of others. NaN and Inf stay.
  const Tensor plain = x.detach(), equal = eq(amax(plain, axes, keep), amin(plain, axes, keep));
  return cast(root(masked_fill(v, logical_and(equal, isfinite(v)), 0)), x.dtype());
}
Tensor stddev(const Tensor& x) { return stddev(x, axes::all_of(x)); }

// y = (sum |x|^p)^(1/p)   dx = sign(x) (|x| / y)^(p - 1) dy
Tensor norm(const Tensor& x, double p, Axes axes, bool keep) {
  const CalledOp called("norm");
  check_float("norm", x);
  check(p >= 0 || p == -kInfinite, "norm",
        [&] { return "needs an exponent of at least 0, or -infinity, got " + std::to_string(p); });
  const Tensor wide = cast(x, accumulate_type(x.dtype()));
  const auto narrow = [&](const Tensor& y) { return cast(y, x.dtype()); };
  if (p == 0) return count_nonzero(x, axes, keep).to(x.dtype());
  if (p == kInfinite) return narrow(amax(abs(wide), axes, keep));
  if (p == -kInfinite) return narrow(amin(abs(wide), axes, keep));
  if (p == 1) return narrow(sum(abs(wide), axes, keep));
  if (p == 2) {
    const Tensor squares = sum_product(wide, wide, axes);
    return narrow(root(keep ? squares : reshape(squares, axes::dropped_shape(x.shape(), axes))));
  }
  return narrow(power(sum(power(abs(wide), p), axes, keep), 1 / p));
}
Tensor norm(const Tensor& x, double p) { return norm(x, p, axes::all_of(x)); }

Tensor softmin(const Tensor& x, int axis) {
  const CalledOp called("softmin");
  return softmax(neg(x), axis);
}

Tensor nansum(const Tensor& x, Axes axes, bool keep) {
  const CalledOp called("nansum");
  check_float("nansum", x);
  return sum(masked_fill(x, ne(x, x), 0), axes, keep);
}
Tensor nansum(const Tensor& x) { return nansum(x, axes::all_of(x)); }

// y = sum of the numbers / how many there are
Tensor nanmean(const Tensor& x, Axes axes, bool keep) {
  const CalledOp called("nanmean");
  check_float("nanmean", x);
  const DType type = accumulate_type(x.dtype());
  const Tensor count = sum(eq(x, x), axes, keep).to(type);
  return cast(div(sum(masked_fill(cast(x, type), ne(x, x), 0), axes, keep), count), x.dtype());
}
Tensor nanmean(const Tensor& x) { return nanmean(x, axes::all_of(x)); }

}  // namespace braid
