#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/composed_gradients.h"
#include "braid/autograd/ops.h"
#include "braid/autograd/saved.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

Shape without_last(Shape shape) {
  Shape out;
  for (int a = 0; a < shape.rank() - 1; ++a) out.push_back(shape[a]);
  return out;
}

void check_vector(const char* op, const char* what, const Tensor& x, const Tensor& vector) {
  if (!vector) return;
  check_same(op, x, vector);
  check(vector.shape() == Shape{x.dim(-1)}, op,
        [&] { return str(what, " ", vector.shape(), " does not fit the last axis of ", x.shape()); });
}

Tensor dense(const Tensor& x) { return x ? x.detach().contiguous() : Tensor(); }

// The tensors that the derivative of a norm needs, checked and contiguous. x is the normalized tensor; weight, bias
// and mean may be empty handles.
struct NormInputs {
  Tensor x, weight, bias, mean, rstd;
  bool needs_dweight, needs_dbias;

  NormInputs(const char* op, const Tensor& input, const Tensor& w, const Tensor& b)
      : needs_dweight(requires_grad(w)), needs_dbias(requires_grad(b)) {
    check(input.rank() >= 1, op, [&] { return str("needs at least one axis, got ", input.shape()); });
    check_vector(op, "weight", input, w);
    check_vector(op, "bias", input, b);
    x = input.detach().contiguous();
    weight = dense(w);
    bias = dense(b);
    rstd = empty(without_last(x.shape()), accumulate_type(x.dtype()), x.device());
  }
  const Backend& device() const { return backend(x.device()); }
  Tensor vector_if(bool needed) const { return needed ? empty({x.dim(-1)}, x.dtype(), x.device()) : Tensor(); }
};

void check_residual(const char* op, const Tensor& x, const Tensor& residual) {
  if (!residual) return;
  check_same(op, x, residual);
  check(x.shape() == residual.shape(), op,
        [&] { return str("the residual ", residual.shape(), " does not have the shape of x ", x.shape()); });
}

// Gradients of x and of the weight. dsum: the gradient of x from its other uses, to be added, or an empty handle.
Grads rms_norm_backward(const NormInputs& s, const Tensor& dy, const Tensor& dsum) {
  Tensor dx = empty_like(s.x), dweight = s.vector_if(s.needs_dweight);
  s.device().norm.rms_backward(s.x, s.weight, s.rstd, dy.contiguous(), dense(dsum), dx, dweight);
  return {dx, dweight};
}
Tensor rms_norm_again(const NormInputs& s, double eps) {
  Tensor none, y = empty_like(s.x), rstd = empty_like(s.rstd);
  s.device().norm.rms_forward(s.x, none, s.weight, eps, none, y, rstd);
  return y;
}
Grads layer_norm_backward(const NormInputs& s, const Tensor& dy, const Tensor& dsum) {
  Tensor dx = empty_like(s.x), dweight = s.vector_if(s.needs_dweight), dbias = s.vector_if(s.needs_dbias);
  s.device().norm.layer_backward(s.x, s.weight, s.mean, s.rstd, dy.contiguous(), dense(dsum), dx, dweight, dbias);
  return {dx, dweight, dbias};
}
Tensor layer_norm_again(const NormInputs& s, double eps) {
  Tensor none, y = empty_like(s.x), mean = empty_like(s.mean), rstd = empty_like(s.rstd);
  s.device().norm.layer_forward(s.x, none, s.weight, s.bias, eps, none, y, mean, rstd);
  return y;
}

// The norms composed of ops, in the type of the arithmetic. bias and weight may be empty handles.
Tensor composed_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps, bool centered) {
  const DType type = accumulate_type(x.dtype());
  Tensor wide = cast(x, type);
  if (centered) wide = sub(wide, mean(wide, {-1}, true));
  Tensor y = mul(wide, rsqrt(mean(square(wide), {-1}, true) + eps));
  if (weight) y = mul(y, cast(weight, type));
  if (bias) y = add(y, cast(bias, type));
  return cast(y, x.dtype());
}

// The derivative by ops that record. NormInputs keeps values; their histories stand beside them.
struct RecordedNorm {
  detail::History x, residual, weight, bias;
  double eps;
  bool centered;

  // Gradients of x (and the residual, whose is the same), weight and bias. dsum: as of rms_norm_backward.
  Grads backward(const NormInputs& s, const Tensor& dy, const Tensor& dsum) const {
    const auto both = [](const Tensor& d) -> Grads { return {d, d}; };
    const Tensor h =
        residual ? record("add", s.x.detach(), {x.on(s.x), residual.on(s.x)}, differentiable(both)) : x.on(s.x);
    Grads g(3);
    if (dy) {
      const auto norm = [this](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{composed_norm(in[0], in[1], in[2], eps, centered)};
      };
      g = detail::composed_gradients(
          {h, s.weight ? weight.on(s.weight) : Tensor(), s.bias ? bias.on(s.bias) : Tensor()}, norm, {dy});
    }
    if (dsum) g[0] = g[0] ? add(g[0], dsum) : dsum;
    return g;
  }
};

}  // namespace

// xh = x / sqrt(mean(x^2) + eps), y = xh w.
// dx = rstd (g - xh mean(g xh)) with g = dy w;   dw = sum over rows of dy xh.
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  NormInputs s("rms_norm", x, weight, {});
  Tensor none, y = empty_like(s.x);
  s.device().norm.rms_forward(s.x, none, s.weight, eps, none, y, s.rstd);
  const RecordedNorm recorded{
      detail::History(x), detail::History({}), detail::History(weight), detail::History({}), eps, false};
  y = record("rms_norm", y, {x, weight}, differentiable([s, recorded](const Tensor& dy) -> Grads {
               if (!recording()) return rms_norm_backward(s, dy, {});
               Grads g = recorded.backward(s, dy, {});
               return {g[0], g[1]};
             }));
  return recomputable(y, [s, eps] { return rms_norm_again(s, eps); });
}

// h = x + r, or x without r; y = rms_norm(h).   dx = dr = dh + the norm's dx, added by its kernel.
SumAndNorm add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, double eps) {
  const CalledOp called("add_rms_norm");
  check_residual("add_rms_norm", x, residual);
  NormInputs s("add_rms_norm", x, weight, {});
  Tensor none, h = residual ? empty_like(s.x) : s.x, y = empty_like(s.x);
  s.device().norm.rms_forward(s.x, dense(residual), s.weight, eps, residual ? h : none, y, s.rstd);
  s.x = h;
  const RecordedNorm recorded{
      detail::History(x), detail::History(residual), detail::History(weight), detail::History({}), eps, false};
  auto out = record_many("add_rms_norm", {h, y}, {x, residual, weight},
                         differentiable([s, recorded](const std::vector<Tensor>& d) -> Grads {
                           if (!d[1]) return {d[0], d[0], {}};
                           Grads g = recording() ? recorded.backward(s, d[1], d[0]) : rms_norm_backward(s, d[1], d[0]);
                           return {g[0], g[0], g[1]};
                         }));
  return {out[0], recomputable(out[1], [s, eps] { return rms_norm_again(s, eps); })};
}

// xh = (x - mean) / sqrt(var + eps), y = xh w + b.
// dx = rstd (g - mean(g) - xh mean(g xh)) with g = dy w;   dw = sum over rows of dy xh;   db = sum over rows of dy.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  NormInputs s("layer_norm", x, weight, bias);
  s.mean = empty_like(s.rstd);
  Tensor none, y = empty_like(s.x);
  s.device().norm.layer_forward(s.x, none, s.weight, s.bias, eps, none, y, s.mean, s.rstd);
  const RecordedNorm recorded{
      detail::History(x), detail::History({}), detail::History(weight), detail::History(bias), eps, true};
  y = record("layer_norm", y, {x, weight, bias}, differentiable([s, recorded](const Tensor& dy) {
               return recording() ? recorded.backward(s, dy, {}) : layer_norm_backward(s, dy, {});
             }));
  return recomputable(y, [s, eps] { return layer_norm_again(s, eps); });
}

// h = x + r, or x without r; y = layer_norm(h).   dx = dr = dh + the norm's dx, added by its kernel.
SumAndNorm add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, const Tensor& bias,
                          double eps) {
  const CalledOp called("add_layer_norm");
  check_residual("add_layer_norm", x, residual);
  NormInputs s("add_layer_norm", x, weight, bias);
  s.mean = empty_like(s.rstd);
  Tensor none, h = residual ? empty_like(s.x) : s.x, y = empty_like(s.x);
  s.device().norm.layer_forward(s.x, dense(residual), s.weight, s.bias, eps, residual ? h : none, y, s.mean, s.rstd);
  s.x = h;
  const RecordedNorm recorded{
      detail::History(x), detail::History(residual), detail::History(weight), detail::History(bias), eps, true};
  auto out = record_many("add_layer_norm", {h, y}, {x, residual, weight, bias},
                         differentiable([s, recorded](const std::vector<Tensor>& d) -> Grads {
                           if (!d[1]) return {d[0], d[0], {}, {}};
                           Grads g =
                               recording() ? recorded.backward(s, d[1], d[0]) : layer_norm_backward(s, d[1], d[0]);
                           return {g[0], g[0], g[1], g[2]};
                         }));
  return {out[0], recomputable(out[1], [s, eps] { return layer_norm_again(s, eps); })};
}

}  // namespace braid
