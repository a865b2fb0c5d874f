#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

// y_i = exp(x_i) / sum_j exp(x_j) along the axis.   dx = y * (dy - sum_j y_j dy_j)
Tensor softmax(const Tensor& x, int axis) {
  check(x.rank() >= 1, "softmax", [&] { return str("needs at least one axis, got ", x.shape()); });
  const int a = normal_axis(axis, x.rank(), "softmax");
  if (a != x.rank() - 1) return transpose(softmax(transpose(x, a, -1)), a, -1);
  Tensor in = x.detach().contiguous(), y = empty_like(x);
  backend(x.device()).softmax.forward(in, y);
  return record("softmax", y, {x}, [y](const Tensor& dy) -> Grads {
    Tensor dx = empty_like(y);
    backend(y.device()).softmax.backward(y, dy.contiguous(), dx);
    return {dx};
  });
}

// y = x - log sum_j exp(x_j).   dx = dy - softmax(x) sum_j dy_j
Tensor log_softmax(const Tensor& x, int axis) {
  check(x.rank() >= 1, "log_softmax", [&] { return str("needs at least one axis, got ", x.shape()); });
  const int a = normal_axis(axis, x.rank(), "log_softmax");
  if (a != x.rank() - 1) return transpose(log_softmax(transpose(x, a, -1)), a, -1);
  Tensor in = x.detach().contiguous(), y = empty_like(x);
  backend(x.device()).softmax.log_forward(in, y);
  return record("log_softmax", y, {x}, [y](const Tensor& dy) -> Grads {
    Tensor dx = empty_like(y);
    backend(y.device()).softmax.log_backward(y, dy.contiguous(), dx);
    return {dx};
  });
}

}  // namespace braid
