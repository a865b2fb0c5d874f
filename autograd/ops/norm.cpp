#include "autograd/ops.h"
#include "autograd/ops/check.h"

namespace braid {

namespace {

DType statistics_type(const Tensor& x) { return x.dtype() == DType::f64 ? DType::f64 : DType::f32; }

Shape without_last(Shape shape) {
  Shape out;
  for (int a = 0; a < shape.rank() - 1; ++a) out.push_back(shape[a]);
  return out;
}

void check_vector(const char* op, const char* what, const Tensor& x, const Tensor& vector) {
  if (!vector) return;
  check_same(op, x, vector);
  check(vector.shape() == Shape{x.dim(-1)}, op, [&] {
    return std::string(what) + " " + str(vector.shape()) + " does not fit the last axis of " + str(x.shape());
  });
}

Tensor like_if(bool wanted, const Tensor& x) { return wanted ? empty_like(x) : Tensor(); }

}  // namespace

// xh = x / sqrt(mean(x^2) + eps), y = xh w.
// dx = rstd (g - xh mean(g xh)) with g = dy w;   dw = sum over rows of dy xh.
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  check(x.rank() >= 1, "rms_norm", [&] { return "needs at least one axis, got " + str(x.shape()); });
  check_vector("rms_norm", "weight", x, weight);
  Tensor in = x.contiguous(), w = weight ? weight.contiguous() : Tensor(), y = empty_like(in);
  Tensor rstd = empty(without_last(x.shape()), statistics_type(x), x.device());
  backend(x.device()).rms_norm(in, w, eps, y, rstd);
  bool wants_weight = requires_grad(weight);
  return record("rms_norm", y, {x, weight}, [in, w, rstd, wants_weight](const Tensor& dy) -> Grads {
    Tensor dx = empty_like(in), dweight = like_if(wants_weight, w);
    backend(dy.device()).rms_norm_backward(in, w, rstd, dy.contiguous(), dx, dweight);
    return {dx, dweight};
  });
}

// xh = (x - mean) / sqrt(var + eps), y = xh w + b.
// dx = rstd (g - mean(g) - xh mean(g xh)) with g = dy w;   dw = sum over rows of dy xh;   db = sum over rows of dy.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  check(x.rank() >= 1, "layer_norm", [&] { return "needs at least one axis, got " + str(x.shape()); });
  check_vector("layer_norm", "weight", x, weight);
  check_vector("layer_norm", "bias", x, bias);
  Tensor in = x.contiguous(), w = weight ? weight.contiguous() : Tensor(), b = bias ? bias.contiguous() : Tensor();
  Tensor y = empty_like(in), mean = empty(without_last(x.shape()), statistics_type(x), x.device()),
         rstd = empty_like(mean);
  backend(x.device()).layer_norm(in, w, b, eps, y, mean, rstd);
  bool wants_weight = requires_grad(weight), wants_bias = requires_grad(bias);
  return record("layer_norm", y, {x, weight, bias},
                [in, w, mean, rstd, wants_weight, wants_bias](const Tensor& dy) -> Grads {
                  Tensor dx = empty_like(in), dweight = like_if(wants_weight, w);
                  Tensor dbias = wants_bias ? empty({in.dim(-1)}, in.dtype(), in.device()) : Tensor();
                  backend(dy.device()).layer_norm_backward(in, w, mean, rstd, dy.contiguous(), dx, dweight, dbias);
                  return {dx, dweight, dbias};
                });
}

}  // namespace braid
