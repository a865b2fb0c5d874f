#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/composed_gradients.h"
#include "braid/autograd/detail/side_by_side.h"
#include "braid/autograd/ops.h"
#include "braid/autograd/saved.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

int64_t rows_of(const Shape& shape) {
  int64_t rows = 1;
  for (int a = 0; a < shape.rank() - 1; ++a) rows *= shape[a];
  return rows;
}

// (..., n) as the matrix (rows, n).
Tensor as_rows(const Tensor& x) { return x.contiguous().reshaped({rows_of(x.shape()), x.dim(-1)}); }

}  // namespace

// y = x W^T + b, x (..., in), W (out, in), b (out).
// dx = dy W,   dW = dy^T x with all rows in one product,   db = sum over the rows of dy.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_same("linear", x, weight);
  check(x.rank() >= 1 && weight.rank() == 2 && x.dim(-1) == weight.dim(1), "linear", [&] {
    return str("input ", x.shape(), " does not fit weight ", weight.shape(),
               ": needs (..., in) and (out, in) with equal in");
  });
  int64_t in = weight.dim(1), out = weight.dim(0);
  Shape shape = x.shape();
  shape[-1] = out;
  Tensor y = empty(shape, x.dtype(), x.device());
  if (bias) {
    check_same("linear", x, bias);
    check(bias.shape() == Shape{out}, "linear",
          [&] { return str("bias ", bias.shape(), " does not fit weight ", weight.shape(), ": needs (out)"); });
  }
  // x keeps its axes: the kernel reads rows with any stride.
  Tensor rows = x.rank() == 1 ? x.detach().unsqueezed(0) : x;
  Tensor target = x.rank() == 1 ? y.unsqueezed(0) : y;
  backend(x.device()).matmul.linear(rows, weight, bias ? bias.detach().contiguous() : bias, target);

  const Saved kept_x = requires_grad(weight) ? Saved(x) : Saved();
  Tensor kept_weight = requires_grad(x) ? weight : Tensor();
  bool needs_dbias = requires_grad(bias);
  Shape shape_x = x.shape();
  return record("linear", y, {x, weight, bias},
                differentiable([kept_x, kept_weight, needs_dbias, shape_x, in, out](const Tensor& dy) -> Grads {
                  if (recording()) {
                    const int64_t count = rows_of(shape_x);
                    const Tensor flat = reshape(dy, {count, out});
                    return {kept_weight ? reshape(matmul(flat, kept_weight), shape_x) : Tensor(),
                            kept_x ? matmul(transpose(flat), reshape(kept_x.get(), {count, in})) : Tensor(),
                            needs_dbias ? sum(flat, {0}) : Tensor()};
                  }
                  Tensor rows_dy = as_rows(dy), dx, dweight, dbias;
                  if (kept_weight) {
                    dx = empty({rows_dy.dim(0), in}, dy.dtype(), dy.device());
                    backend(dy.device()).matmul.product(rows_dy, kept_weight, false, dx);
                    dx = dx.reshaped(shape_x);
                  }
                  if (kept_x) {
                    dweight = empty({out, in}, dy.dtype(), dy.device());
                    backend(dy.device()).matmul.product(rows_dy.transposed(), as_rows(kept_x.get()), false, dweight);
                  }
                  if (needs_dbias) {
                    dbias = empty({1, out}, dy.dtype(), dy.device());
                    backend(dy.device()).reduce.axes(ReduceOp::sum, rows_dy, dbias);
                    dbias = dbias.reshaped({out});
                  }
                  return {dx, dweight, dbias};
                }));
}

// [a b] = x [Wa; Wb]^T.   dx = [da db] [Wa; Wb],   dWa = da^T x,   dWb = db^T x.
// Composed: linear(x, Wa), linear(x, Wb). Their derivative forms two dx and adds them; here dx is one product, or,
// where da and db come from different places, two that are summed in one memory. The CPU computes the composed form:
// its products of this size gain nothing. dWa and dWb have memory of their own, as gradients of two parameters must.
LinearPair linear_pair(const Tensor& x, const Tensor& weight_a, const Tensor& weight_b) {
  const CalledOp called("linear_pair");
  const Tensor both = weight_a.rank() == 2 ? joined(weight_a.detach(), weight_b.detach(), 0) : Tensor();
  const bool fits = both && x.rank() >= 1 && x.dim(-1) == both.dim(1) && x.dtype() == both.dtype();
  if (!fits || x.device() == kCpu || x.device() != both.device()) return {linear(x, weight_a), linear(x, weight_b)};
  const int64_t in = both.dim(1), out = weight_a.dim(0);
  const Backend& device = backend(x.device());
  Shape shape = x.shape();
  shape[-1] = 2 * out;
  Tensor y = empty(shape, x.dtype(), x.device());
  const Tensor rows = x.rank() == 1 ? x.detach().unsqueezed(0) : x.detach();
  Tensor target = x.rank() == 1 ? y.unsqueezed(0) : y;
  device.matmul.linear(rows, both, {}, target);

  const bool needs_a = requires_grad(weight_a), needs_b = requires_grad(weight_b);
  const Tensor kept_x = needs_a || needs_b ? x : Tensor(), kept_weight = requires_grad(x) ? both : Tensor();
  auto backward = [=, shape_x = x.shape(), &device](const std::vector<Tensor>& d) -> Grads {
    if (recording()) {
      const auto composed = [](const std::vector<Tensor>& t) {
        return std::vector<Tensor>{linear(t[0], t[1]), linear(t[0], t[2])};
      };
      return detail::composed_gradients({x, weight_a, weight_b}, composed, d);
    }
    const Tensor dy = joined(d[0], d[1], d[0] ? d[0].rank() - 1 : 0);
    const auto half = [=](const Tensor& of, int axis, size_t i) {
      const auto first = static_cast<int64_t>(i) * out;
      return of.sliced(axis, first, first + out);
    };
    const auto part = [&](size_t i) { return dy ? half(as_rows(dy), 1, i) : as_rows(d[i]); };  // (rows, out)
    Tensor dx;
    if (kept_weight) {
      dx = empty({numel(shape_x) / in, in}, kept_weight.dtype(), kept_weight.device());
      bool begun = false;
      if (dy) device.matmul.product(as_rows(dy), kept_weight, false, dx);
      for (size_t i = 0; i < 2 && !dy; ++i) {
        if (!d[i]) continue;
        device.matmul.product(part(i), half(kept_weight, 0, i), begun, dx);
        begun = true;
      }
      dx = dx.reshaped(shape_x);
    }
    const auto dweight = [&](bool needed, size_t i) {
      if (!needed || !d[i]) return Tensor();
      Tensor dw = empty({out, in}, d[i].dtype(), d[i].device());
      device.matmul.product(part(i).transposed(), as_rows(kept_x), false, dw);
      return dw;
    };
    return {dx, dweight(needs_a, 0), dweight(needs_b, 1)};
  };
  auto halves = record_many("linear_pair", {y.sliced(-1, 0, out), y.sliced(-1, out, 2 * out)}, {x, weight_a, weight_b},
                            differentiable(std::move(backward)));
  return {halves[0], halves[1]};
}

}  // namespace braid
