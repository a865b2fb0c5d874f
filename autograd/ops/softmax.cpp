#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/composed_gradients.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

// y = softmax(x), of which the derivative needs no value of x: with a history again, that of y, whose derivative is
// this formula.
Tensor softmax_again(const Tensor& y, const detail::History& of_x) {
  const Tensor history = of_x.on(y);  // the handle of x's node; its values are not read
  return record("softmax", y.detach(), {history}, differentiable([y, of_x](const Tensor& dy) -> Grads {
                  const Tensor again = recording() ? softmax_again(y, of_x) : y;
                  return {mul(again, sub(dy, sum(mul(again, dy), {-1}, true)))};
                }));
}

}  // namespace

// y_i = exp(x_i) / sum_j exp(x_j) along the axis.   dx = y * (dy - sum_j y_j dy_j)
Tensor softmax(const Tensor& x, int axis) {
  const int a = axis_of("softmax", x, axis);
  if (a != x.rank() - 1) return transpose(softmax(transpose(x, a, -1)), a, -1);
  Tensor in = x.detach().contiguous(), y = empty_like(x);
  backend(x.device()).softmax.forward(in, y);
  return record("softmax", y, {x}, differentiable([y, of_x = detail::History(x)](const Tensor& dy) -> Grads {
                  if (recording()) {
                    const Tensor again = softmax_again(y, of_x);
                    return {mul(again, sub(dy, sum(mul(again, dy), {-1}, true)))};
                  }
                  Tensor dx = empty_like(y);
                  backend(y.device()).softmax.backward(y, dy.contiguous(), dx);
                  return {dx};
                }));
}

// y = x - log sum_j exp(x_j).   dx = dy - softmax(x) sum_j dy_j
Tensor log_softmax(const Tensor& x, int axis) {
  const int a = axis_of("log_softmax", x, axis);
  if (a != x.rank() - 1) return transpose(log_softmax(transpose(x, a, -1)), a, -1);
  Tensor in = x.detach().contiguous(), y = empty_like(x);
  backend(x.device()).softmax.log_forward(in, y);
  return record("log_softmax", y, {x}, differentiable([y, of_x = detail::History(x)](const Tensor& dy) -> Grads {
                  if (recording()) {
                    const Tensor p = softmax_again(no_grad([&] { return exp(y); }), of_x);
                    return {sub(dy, mul(p, sum(dy, {-1}, true)))};
                  }
                  Tensor dx = empty_like(y);
                  backend(y.device()).softmax.log_backward(y, dy.contiguous(), dx);
                  return {dx};
                }));
}

}  // namespace braid
