// Scans. All but the sums and the extremes are linear recurrences, whose derivative is one as well.
#include "braid/autograd/scans.h"

#include <limits>

#include "braid/autograd/detail/check.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

// f of x with the axis as the last one.
template <class F>
Tensor along_last(const Tensor& x, int axis, F&& f) {
  return axis == x.rank() - 1 ? f(x) : transpose(f(transpose(x, axis, -1)), axis, -1);
}

// y_i = x_0 + ... + x_i   dx_i = dy_i + ... + dy_last; reverse: the same from the other end
Tensor running_sum(const Tensor& x, bool reverse) {
  Tensor y = empty(x.shape(), is_float(x.dtype()) ? x.dtype() : DType::i64, x.device());
  backend(x.device()).scan.cumsum(x.detach().contiguous(), reverse, y);
  return record("cumsum", y, {x},
                differentiable([reverse](const Tensor& dy) -> Grads { return {running_sum(dy, !reverse)}; }));
}

// Rows (..., n) moved by one element, 0 at the free end: y_i = x_(i-1), or x_(i+1) where `down`.
Tensor moved_by_one(const Tensor& x, bool down) {
  const int64_t n = x.dim(-1);
  Shape shape = x.shape();
  shape[-1] = 1;
  const Tensor zero = zeros(shape, x.dtype(), x.device());
  return down ? concat({slice(x, -1, 1, n), zero}, -1) : concat({zero, slice(x, -1, 0, n - 1)}, -1);
}

// Along rows, upwards:   y_i = a_i y_(i-1) + b_i,  y_(-1) = 0
// g_i, all that y_i is worth:   g_i = dy_i + a_(i+1) g_(i+1)   db_i = g_i   da_i = g_i y_(i-1)
Tensor recurrence_of_rows(const char* op, const Tensor& a, const Tensor& b, bool reverse) {
  if (b.numel() == 0) return add(b, a);
  Tensor y = empty_like(b);
  backend(b.device()).scan.recurrence(a.detach().contiguous(), b.detach().contiguous(), reverse, y);
  const bool need_a = requires_grad(a);
  return record(op, y, {a, b}, differentiable([=](const Tensor& dy) -> Grads {
                  const Tensor g = recurrence_of_rows(op, moved_by_one(a, !reverse), dy, !reverse);
                  if (!need_a) return {Tensor(), g};
                  // y as a function of a and b, where the derivative itself is differentiated.
                  const Tensor again = recording({a, b}) ? recurrence_of_rows(op, a, b, reverse) : y;
                  return {mul(g, moved_by_one(again, reverse)), g};
                }));
}

// y_i = the largest (smallest) of x_0 to x_i   dx_i = the sum of dy_j over the j where y_j is x_i
// An element that is the extreme for j = i .. k collects g_i = dy_i + g_(i+1), up to k: a recurrence whose factors are
// 1 inside of such a run and 0 at its end.
ValuesAndIndices running_extreme(const char* op, const Tensor& x, bool smallest) {
  Tensor values = empty_like(x), indices = empty(x.shape(), DType::i64, x.device());
  backend(x.device()).scan.cummax(x.detach().contiguous(), smallest, values, indices);
  values = record(op, values, {x, indices}, differentiable([op, indices](const Tensor& dy) -> Grads {
                    const int64_t n = indices.dim(-1);
                    if (indices.numel() == 0) return {dy, {}};
                    const Tensor same = eq(slice(indices, -1, 1, n), slice(indices, -1, 0, n - 1)).to(dy.dtype());
                    Shape end = indices.shape();
                    end[-1] = 1;
                    const Tensor last = zeros(end, dy.dtype(), dy.device());
                    const Tensor inside = concat({same, last}, -1), begins = 1 - concat({last, same}, -1);
                    return {mul(recurrence_of_rows(op, inside, dy, true), begins), {}};
                  }));
  return {values, indices};
}

ValuesAndIndices running_extreme_along(const char* op, const Tensor& x, int axis, bool smallest) {
  const int a = axis_of(op, x, axis);
  if (a == x.rank() - 1) return running_extreme(op, x, smallest);
  const ValuesAndIndices y = running_extreme(op, transpose(x, a, -1), smallest);
  return {transpose(y.values, a, -1), y.indices.transposed(a, -1)};
}

// y_i = log s_i + m_i,  m_i the largest of x_0 to x_i,  s_i = exp(m_(i-1) - m_i) s_(i-1) + exp(x_i - m_i)
// m is a constant: y does not depend on it. It is clamped to finite values. Where s is 0, all before are -inf: y is
// -inf and has no gradient.
Tensor log_running_sum(const Tensor& x) {
  if (x.numel() == 0) return reshape(x, x.shape());
  const double largest =
      x.dtype() == DType::f64 ? std::numeric_limits<double>::max() : double{std::numeric_limits<float>::max()};
  const Tensor m = no_grad([&] { return clamp(cummax(x.detach()).values, -largest, largest); });
  const Tensor fall = no_grad([&] { return exp(sub(moved_by_one(m, false), m)); });
  const Tensor s = recurrence_of_rows("logcumsumexp", fall, exp(sub(x, m)), false);
  const Tensor nothing = eq(s, 0);
  return masked_fill(add(log(masked_fill(s, nothing, 1)), m), nothing, -std::numeric_limits<double>::infinity());
}

}  // namespace

Tensor cumsum(const Tensor& x, int axis) {
  return along_last(x, axis_of("cumsum", x, axis), [](const Tensor& rows) { return running_sum(rows, false); });
}

// y_i = x_i y_(i-1), y_0 = x_0
Tensor cumprod(const Tensor& x, int axis) {
  const CalledOp called("cumprod");
  check_float("cumprod", x);
  return along_last(x, axis_of("cumprod", x, axis), [](const Tensor& rows) {
    if (rows.numel() == 0) return reshape(rows, rows.shape());
    Shape shape = rows.shape();
    shape[-1] -= 1;
    const Tensor none = zeros(shape, rows.dtype(), rows.device());
    return recurrence_of_rows("cumprod", rows, concat({slice(rows, -1, 0, 1), none}, -1), false);
  });
}

ValuesAndIndices cummax(const Tensor& x, int axis) { return running_extreme_along("cummax", x, axis, false); }
ValuesAndIndices cummin(const Tensor& x, int axis) { return running_extreme_along("cummin", x, axis, true); }

Tensor logcumsumexp(const Tensor& x, int axis) {
  const CalledOp called("logcumsumexp");
  check_float("logcumsumexp", x);
  const int a = axis_of("logcumsumexp", x, axis);
  return cast(along_last(cast(x, accumulate_type(x.dtype())), a, log_running_sum), x.dtype());
}

Tensor linear_recurrence(const Tensor& a, const Tensor& b, int axis, bool reverse) {
  const CalledOp called("linear_recurrence");
  check_float("linear_recurrence", b);
  check_same("linear_recurrence", a, b);
  check(a.shape() == b.shape(), "linear_recurrence",
        [&] { return str("needs factors and terms of one shape, got ", a.shape(), " and ", b.shape()); });
  const int last = b.rank() - 1, at = axis_of("linear_recurrence", b, axis);
  if (at == last) return recurrence_of_rows("linear_recurrence", a, b, reverse);
  return transpose(recurrence_of_rows("linear_recurrence", transpose(a, at, -1), transpose(b, at, -1), reverse), at,
                   -1);
}

Tensor diff(const Tensor& x, int64_t order, int axis) {
  const CalledOp called("diff");
  check(order >= 0, "diff", [&] { return str("needs an order of at least 0, got ", order); });
  const int a = axis_of("diff", x, axis);
  Tensor y = order == 0 || x.dim(a) == 0 ? reshape(x, x.shape()) : x;
  for (int64_t n = y.dim(a); order > 0 && n > 0; --order, --n) y = sub(slice(y, a, 1, n), slice(y, a, 0, n - 1));
  return y;
}

}  // namespace braid
