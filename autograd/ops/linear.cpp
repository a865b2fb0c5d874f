#include "braid/autograd/detail/check.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

// (..., n) as the matrix (rows, n).
Tensor as_rows(const Tensor& x) {
  int64_t n = x.dim(-1), rows = 1;
  for (int a = 0; a < x.rank() - 1; ++a) rows *= x.dim(a);
  return x.contiguous().reshaped({rows, n});
}

}  // namespace

// y = x W^T + b, x (..., in), W (out, in), b (out).
// dx = dy W,   dW = dy^T x with all rows in one product,   db = sum over the rows of dy.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_same("linear", x, weight);
  check(x.rank() >= 1 && weight.rank() == 2 && x.dim(-1) == weight.dim(1), "linear", [&] {
    return "input " + str(x.shape()) + " does not fit weight " + str(weight.shape()) +
           ": needs (..., in) and (out, in) with equal in";
  });
  int64_t in = weight.dim(1), out = weight.dim(0);
  Shape shape = x.shape();
  shape[-1] = out;
  Tensor y = empty(shape, x.dtype(), x.device());
  if (bias) {
    check_same("linear", x, bias);
    check(bias.shape() == Shape{out}, "linear", [&] {
      return "bias " + str(bias.shape()) + " does not fit weight " + str(weight.shape()) + ": needs (out)";
    });
  }
  // x keeps its axes: the kernel reads rows with any stride.
  Tensor rows = x.rank() == 1 ? x.detach().unsqueezed(0) : x;
  Tensor target = x.rank() == 1 ? y.unsqueezed(0) : y;
  backend(x.device()).matmul.linear(rows, weight, bias ? bias.detach().contiguous() : bias, target);

  Tensor kept_x = requires_grad(weight) ? x : Tensor(), kept_weight = requires_grad(x) ? weight : Tensor();
  bool needs_dbias = requires_grad(bias);
  Shape shape_x = x.shape();
  return record("linear", y, {x, weight, bias},
                [kept_x, kept_weight, needs_dbias, shape_x, in, out](const Tensor& dy) -> Grads {
                  Tensor rows_dy = as_rows(dy), dx, dweight, dbias;
                  if (kept_weight) {
                    dx = empty({rows_dy.dim(0), in}, dy.dtype(), dy.device());
                    backend(dy.device()).matmul.product(rows_dy, kept_weight, false, dx);
                    dx = dx.reshaped(shape_x);
                  }
                  if (kept_x) {
                    dweight = empty({out, in}, dy.dtype(), dy.device());
                    backend(dy.device()).matmul.product(rows_dy.transposed(), as_rows(kept_x), false, dweight);
                  }
                  if (needs_dbias) {
                    dbias = empty({1, out}, dy.dtype(), dy.device());
                    backend(dy.device()).reduce.axes(ReduceOp::sum, rows_dy, dbias);
                    dbias = dbias.reshaped({out});
                  }
                  return {dx, dweight, dbias};
                });
}

}  // namespace braid
