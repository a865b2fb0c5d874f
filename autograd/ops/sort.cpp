// Elements in order.
#include <limits>

#include "braid/autograd/detail/axes.h"
#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/take.h"
#include "braid/autograd/order.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

// The first k of the sorted order of each row: x (..., V) -> values, indices (..., k).
// dx[..., indices[..., j]] = dvalues[..., j], 0 elsewhere
ValuesAndIndices sorted_rows(const char* op, const Tensor& x, bool descending, int64_t k) {
  Shape shape = x.shape();
  shape[-1] = k;
  Tensor values = empty(shape, x.dtype(), x.device()), indices = empty(shape, DType::i64, x.device());
  backend(x.device()).order.sort(x.detach().contiguous(), descending, values, indices);
  values = record(op, values, {x, indices}, differentiable([op, indices, n = x.dim(-1)](const Tensor& dy) -> Grads {
                    return {place_in_rows(op, dy, indices, n), {}};
                  }));
  return {values, indices};
}

ValuesAndIndices sorted(const char* op, const Tensor& x, int axis, bool descending, int64_t k = -1) {
  const int a = axis_of(op, x, axis);
  if (k < 0) k = x.dim(a);
  if (a == x.rank() - 1) return sorted_rows(op, x, descending, k);
  const ValuesAndIndices y = sorted_rows(op, transpose(x, a, -1), descending, k);
  return {transpose(y.values, a, -1), y.indices.transposed(a, -1)};
}

ValuesAndIndices first_k(const Tensor& x, int64_t k, int axis, bool largest) {
  const int a = axis_of("topk", x, axis);
  check(k >= 0 && k <= x.dim(a), "topk", [&] {
    const std::string name = a == x.rank() - 1 ? "the last axis" : str("axis ", axis);
    return str("needs k between 0 and the size of ", name, " of ", x.shape(), ", got ", k);
  });
  return sorted("topk", x, a, largest, k);
}

}  // namespace

ValuesAndIndices sort(const Tensor& x, bool descending) { return sorted("sort", x, -1, descending); }
ValuesAndIndices sort(const Tensor& x, int axis, bool descending) { return sorted("sort", x, axis, descending); }

ValuesAndIndices topk(const Tensor& x, int64_t k) { return first_k(x, k, -1, true); }
ValuesAndIndices topk(const Tensor& x, int64_t k, int axis, bool largest) { return first_k(x, k, axis, largest); }

Tensor argsort(const Tensor& x, bool descending) { return argsort(x, -1, descending); }
Tensor argsort(const Tensor& x, int axis, bool descending) {
  no_gradient("argsort", x);
  return sorted("argsort", x, axis, descending).indices;
}

ValuesAndIndices kthvalue(const Tensor& x, int64_t k, int axis, bool keep) {
  const CalledOp called("kthvalue");
  const int a = axis_of("kthvalue", x, axis);
  check(k >= 1 && k <= x.dim(a), "kthvalue",
        [&] { return str("needs k between 1 and the size of axis ", axis, " of ", x.shape(), ", got ", k); });
  const axes::Rows rows("kthvalue", x, {a});
  const Tensor lines = rows.to_rows(x);
  const Tensor index = sorted_rows("kthvalue", lines.detach(), false, k).indices.sliced(-1, k - 1, k).contiguous();
  return {rows.result(take_in_rows("kthvalue", lines, index), keep), index.reshaped(keep ? rows.kept : rows.dropped)};
}

namespace {

// Rows (..., n), each sorted once -> (...) for each q: (1 - f) s_i + f s_(i+1), i + f = q (n - 1). 16-bit values are
// interpolated in f32 and rounded once.
std::vector<Tensor> quantiles_of_rows(const char* op, const Tensor& x, const std::vector<double>& qs) {
  check_float(op, x);
  const int64_t n = x.dim(-1);
  check(n > 0, op, "needs at least one element, got none");
  const Tensor s = cast(sorted_rows(op, x, false, n).values, accumulate_type(x.dtype()));
  const Tensor last = s.detach().sliced(-1, n - 1, n), missing = ne(last, last);
  std::vector<Tensor> found;
  for (const double q : qs) {
    check(q >= 0 && q <= 1, op, [&] { return "needs quantiles from 0 to 1, got " + detail::shortest(q); });
    const double at = q * static_cast<double>(n - 1);
    const auto i = static_cast<int64_t>(at);
    const double f = at - static_cast<double>(i);
    Tensor y = slice(s, -1, i, i + 1);
    if (f > 0) y = scale(y, 1 - f) + scale(slice(s, -1, i + 1, i + 2), f);
    found.push_back(cast(masked_fill(y, missing, std::numeric_limits<double>::quiet_NaN()), x.dtype()));
  }
  return found;
}

Tensor quantile_along(const char* op, const Tensor& x, double q, int axis, bool keep) {
  const CalledOp called(op);
  const axes::Rows rows(op, x, {axis_of(op, x, axis)});
  return rows.result(quantiles_of_rows(op, rows.to_rows(x), {q})[0], keep);
}

Tensor quantile_of_all(const char* op, const Tensor& x, double q) {
  const CalledOp called(op);
  return reshape(quantiles_of_rows(op, reshape(x, {x.numel()}), {q})[0], {});
}

}  // namespace

Tensor quantile(const Tensor& x, double q) { return quantile_of_all("quantile", x, q); }
Tensor quantile(const Tensor& x, double q, int axis, bool keep) { return quantile_along("quantile", x, q, axis, keep); }
Tensor quantile(const Tensor& x, const std::vector<double>& qs, int axis, bool keep) {
  const CalledOp called("quantile");
  check(!qs.empty(), "quantile", "needs at least one quantile, got none");
  const axes::Rows rows("quantile", x, {axis_of("quantile", x, axis)});
  std::vector<Tensor> found;
  for (const Tensor& y : quantiles_of_rows("quantile", rows.to_rows(x), qs)) found.push_back(rows.result(y, keep));
  return stack(found);
}
Tensor median(const Tensor& x) { return quantile_of_all("median", x, 0.5); }
Tensor median(const Tensor& x, int axis, bool keep) { return quantile_along("median", x, 0.5, axis, keep); }

}  // namespace braid
