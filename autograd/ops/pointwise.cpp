// Pointwise operations: each element of the result from one element of each input. The functions and their derivatives
// are in tensor/kernels/pointwise_ops.h.
#include <cmath>
#include <tuple>

#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/integer.h"
#include "braid/autograd/detail/mul_reduce_to.h"
#include "braid/autograd/detail/side_by_side.h"
#include "braid/autograd/math.h"
#include "braid/autograd/ops.h"
#include "braid/autograd/saved.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"

namespace braid {

namespace {

// dy f'(x; a, b) by the kernel of f, without history
Tensor unary_slope(UnaryOp op, double a, double b, const Tensor& x, const Tensor& dy) {
  Tensor dx = empty_like(x);
  backend(x.device()).pointwise.unary_backward(op, a, b, x.detach(), dy.detach(), dx);
  return dx;
}

// The same by ops that record. A slope that is constant in pieces is a constant.
Tensor recorded_slope(UnaryOp op, double a, double b, const Tensor& x, const Tensor& dy) {
  switch (op) {
    case UnaryOp::exp:
      return mul(dy, exp(x));
    case UnaryOp::log:
      return div(dy, x);
    case UnaryOp::sqrt:
      return div(dy, scale(sqrt(x), 2));
    case UnaryOp::rsqrt: {
      const Tensor r = rsqrt(x);
      return mul(dy, scale(mul(r, mul(r, r)), -0.5));
    }
    case UnaryOp::square:
      return mul(dy, scale(x, 2));
    case UnaryOp::inverse:
      return mul(dy, neg(div(a / x, x)));
    case UnaryOp::tanh:
      return mul(dy, 1 - square(tanh(x)));
    case UnaryOp::softcap:
      return mul(dy, 1 - square(tanh(x / a)));
    case UnaryOp::sigmoid: {
      const Tensor s = sigmoid(x);
      return mul(dy, mul(s, 1 - s));
    }
    case UnaryOp::erf:
      return mul(dy, scale(exp(neg(square(x))), pointwise::k2OverSqrtPi));
    case UnaryOp::silu: {  // s (1 + x (1 - s))
      const Tensor s = sigmoid(x);
      return mul(dy, mul(s, mul(x, 1 - s) + 1));
    }
    case UnaryOp::softplus:
      return mul(dy, sigmoid(x));
    case UnaryOp::gelu_erf: {  // Phi(x) + x phi(x)
      const Tensor cumulative = affine(erf(scale(x, pointwise::kSqrtHalf)), 0.5, 0.5);
      return mul(dy, add(cumulative, mul(x, scale(exp(scale(square(x), -0.5)), pointwise::kInvSqrt2Pi))));
    }
    case UnaryOp::gelu_tanh: {  // with u = sqrt(2/pi) (x + c x^3): (1 + t + x (1 - t^2) du) / 2, t = tanh(u)
      const Tensor x2 = square(x);
      const Tensor t = tanh(scale(mul(x, affine(x2, pointwise::kGeluCubic, 1)), pointwise::kSqrt2OverPi));
      const Tensor du = scale(affine(x2, 3 * pointwise::kGeluCubic, 1), pointwise::kSqrt2OverPi);
      return mul(dy, scale(add(t, mul(mul(x, 1 - square(t)), du)) + 1, 0.5));
    }
    case UnaryOp::cube:
      return mul(dy, scale(square(x), 3));
    case UnaryOp::pow:
      return a == 0 ? zeros(x.shape(), x.dtype(), x.device()) : mul(dy, scale(pow(x, a - 1), a));
    case UnaryOp::affine:
    case UnaryOp::quotient:
    case UnaryOp::abs:
    case UnaryOp::relu:
    case UnaryOp::clamp:
    case UnaryOp::count:
      break;
  }
  return mul(dy, no_grad([&] { return unary_slope(op, a, b, x, ones(x.shape(), x.dtype(), x.device())); }));
}

// y = f(x; a, b)   dx = dy f'(x; a, b)
Tensor unary(const char* name, UnaryOp op, const Tensor& x, double a = 0, double b = 0) {
  check_float(name, x);
  Tensor y = empty_like(x);
  backend(x.device()).pointwise.unary(op, a, b, x, y);
  return record(name, y, {x}, differentiable([=](const Tensor& dy) -> Grads {
                  if (!recording()) return {unary_slope(op, a, b, x, dy)};
                  const DType wide = accumulate_type(x.dtype());  // as the kernel computes
                  return {cast(recorded_slope(op, a, b, cast(x, wide), cast(dy, wide)), x.dtype())};
                }));
}

// The same for an activation in front of a product: its derivative keeps x, from which the product can have y again.
Tensor activation(const char* name, UnaryOp op, const Tensor& x) {
  return recomputable(unary(name, op, x), [op, x] {
    Tensor y = empty_like(x);
    backend(x.device()).pointwise.unary(op, 0, 0, x, y);
    return y;
  });
}

// The same function of integers; count where there is none.
IntegerOp of_integers(BinaryOp op) {
  switch (op) {
    case BinaryOp::add:
      return IntegerOp::add;
    case BinaryOp::sub:
      return IntegerOp::sub;
    case BinaryOp::mul:
      return IntegerOp::mul;
    case BinaryOp::maximum:
      return IntegerOp::maximum;
    case BinaryOp::minimum:
      return IntegerOp::minimum;
    default:
      return IntegerOp::count;
  }
}

// z = f(x, y) with both repeated to their common shape, checked, without history.
Tensor combine(const char* name, BinaryOp op, const Tensor& x, const Tensor& y) {
  if (!is_float(x.dtype()) && of_integers(op) != IntegerOp::count) return integer_binary(name, of_integers(op), x, y);
  check_float(name, x);
  check_same(name, x, y);
  Shape shape = broadcast(x.shape(), y.shape(), name);
  Tensor z = empty(shape, x.dtype(), x.device());
  backend(x.device()).pointwise.binary(op, x.detach().expanded(shape), y.detach().expanded(shape), z);
  return z;
}

// The gradients of div, maximum, minimum and swiglu by ops that record.
Grads recorded_slopes(BinaryOp op, const Tensor& x, const Tensor& y, const Tensor& dz) {
  Tensor dx, dy;
  if (op == BinaryOp::div) {
    dx = div(dz, y);
    dy = neg(mul(dz, div(div(x, y), y)));
  } else if (op == BinaryOp::swiglu) {
    dx = recorded_slope(UnaryOp::silu, 0, 0, x, mul(dz, y));
    dy = mul(dz, silu(x));
  } else {  // the slopes are 0 or 1
    const NoGrad off;
    const Tensor one = ones(dz.shape(), dz.dtype(), dz.device());
    dx = empty_like(one), dy = empty_like(one);
    backend(dz.device()).pointwise.binary_backward(op, x.expanded(dz.shape()), y.expanded(dz.shape()), one, dx, dy);
    const EnableGrad on;
    dx = mul(dz, dx), dy = mul(dz, dy);
  }
  return {requires_grad(x) ? sum_to(dx, x.shape()) : Tensor(), requires_grad(y) ? sum_to(dy, y.shape()) : Tensor()};
}

// z = f(x, y)   dx = dz df/dx,  dy = dz df/dy, summed over the axes along which the input was repeated.
Tensor binary(const char* name, BinaryOp op, const Tensor& x, const Tensor& y) {
  Tensor z = combine(name, op, x, y);
  return record(
      name, z, {x, y}, differentiable([=](const Tensor& dz) -> Grads {
        if (recording()) return recorded_slopes(op, x, y, dz);
        Tensor dx = requires_grad(x) ? empty_like(dz) : Tensor(), dy = requires_grad(y) ? empty_like(dz) : Tensor();
        if (dx && dy && joined(x, y, -1)) std::tie(dx, dy) = pair_like(x, y, -1);  // so are their gradients
        backend(dz.device()).pointwise.binary_backward(op, x.expanded(dz.shape()), y.expanded(dz.shape()), dz, dx, dy);
        return {dx ? sum_to(dx, x.shape()) : Tensor(), dy ? sum_to(dy, y.shape()) : Tensor()};
      }));
}

constexpr double kNothing = -0.0;  // x + -0 is x, also for x = -0

// y = a x + b   dx = a dy
Tensor affine(const char* name, const Tensor& x, double a, double b) {
  check_float(name, x);
  Tensor y = empty_like(x);
  backend(x.device()).pointwise.unary(UnaryOp::affine, a, b, x, y);
  return record(name, y, {x}, differentiable([a](const Tensor& dy) -> Grads { return {a == 1 ? dy : scale(dy, a)}; }));
}

// The properties of an input that a derivative needs when it does not need the values.
struct InputInfo {
  explicit InputInfo(const Tensor& x) : shape(x.shape()), needs_grad(requires_grad(x)) {}
  Shape shape;
  bool needs_grad;
};

}  // namespace

// z = x + y   dx = dz, dy = dz
Tensor add(const Tensor& x, const Tensor& y) {
  return record(
      "add", combine("add", BinaryOp::add, x, y), {x, y},
      differentiable([fx = InputInfo(x), fy = InputInfo(y)](const Tensor& dz) -> Grads {
        return {fx.needs_grad ? sum_to(dz, fx.shape) : Tensor(), fy.needs_grad ? sum_to(dz, fy.shape) : Tensor()};
      }));
}

// z = x - y   dx = dz, dy = -dz
Tensor sub(const Tensor& x, const Tensor& y) {
  return record(
      "sub", combine("sub", BinaryOp::sub, x, y), {x, y},
      differentiable([fx = InputInfo(x), fy = InputInfo(y)](const Tensor& dz) -> Grads {
        return {fx.needs_grad ? sum_to(dz, fx.shape) : Tensor(), fy.needs_grad ? neg(sum_to(dz, fy.shape)) : Tensor()};
      }));
}

// z = x y   dx = dz y, dy = dz x
Tensor mul(const Tensor& x, const Tensor& y) {
  InputInfo fx(x), fy(y);
  // Each factor is kept only if the other one's gradient needs it.
  Tensor keep_x = fy.needs_grad ? x : Tensor(), keep_y = fx.needs_grad ? y : Tensor();
  return record("mul", combine("mul", BinaryOp::mul, x, y), {x, y}, differentiable([=](const Tensor& dz) -> Grads {
                  return {keep_y ? product_to(dz, keep_y, fx.shape) : Tensor(),
                          keep_x ? product_to(dz, keep_x, fy.shape) : Tensor()};
                }));
}

Tensor div(const Tensor& x, const Tensor& y) { return binary("div", BinaryOp::div, x, y); }
Tensor maximum(const Tensor& x, const Tensor& y) { return binary("maximum", BinaryOp::maximum, x, y); }
Tensor minimum(const Tensor& x, const Tensor& y) { return binary("minimum", BinaryOp::minimum, x, y); }
// z = silu(gate) up   The products behind it need z; its own derivative keeps gate and up.
Tensor swiglu(const Tensor& gate, const Tensor& up) {
  return recomputable(binary("swiglu", BinaryOp::swiglu, gate, up),
                      [gate, up] { return combine("swiglu", BinaryOp::swiglu, gate, up); });
}

Tensor affine(const Tensor& x, double a, double b) { return affine("affine", x, a, b); }
Tensor scale(const Tensor& x, double a) { return affine("scale", x, a, kNothing); }
Tensor neg(const Tensor& x) {
  if (!is_float(x.dtype())) return integer_binary("neg", IntegerOp::sub, number_like("neg", 0, x), x);
  return affine("neg", x, -1, kNothing);
}
Tensor operator+(const Tensor& x, double b) {
  return is_float(x.dtype()) ? affine("add", x, 1, b) : add(x, number_like("add", b, x));
}
Tensor operator-(const Tensor& x, double b) {
  return is_float(x.dtype()) ? affine("sub", x, 1, -b) : sub(x, number_like("sub", b, x));
}
Tensor operator-(double b, const Tensor& x) {
  return is_float(x.dtype()) ? affine("sub", x, -1, b) : sub(number_like("sub", b, x), x);
}
Tensor operator*(const Tensor& x, double a) {
  return is_float(x.dtype()) ? affine("mul", x, a, kNothing) : mul(x, number_like("mul", a, x));
}
// y = x / a   dx = dy / a
Tensor operator/(const Tensor& x, double a) {
  check_float("div", x);
  Tensor y = empty_like(x);
  backend(x.device()).pointwise.unary(UnaryOp::quotient, a, 0, x, y);
  return record("div", y, {x}, differentiable([a](const Tensor& dy) -> Grads { return {dy / a}; }));
}
Tensor operator/(double a, const Tensor& x) { return unary("div", UnaryOp::inverse, x, a); }
Tensor exp(const Tensor& x) { return unary("exp", UnaryOp::exp, x); }
Tensor log(const Tensor& x) { return unary("log", UnaryOp::log, x); }
Tensor sqrt(const Tensor& x) { return unary("sqrt", UnaryOp::sqrt, x); }
Tensor rsqrt(const Tensor& x) { return unary("rsqrt", UnaryOp::rsqrt, x); }
Tensor square(const Tensor& x) { return is_float(x.dtype()) ? unary("square", UnaryOp::square, x) : mul(x, x); }
Tensor reciprocal(const Tensor& x) { return unary("reciprocal", UnaryOp::inverse, x, 1); }
Tensor abs(const Tensor& x) {
  if (x.dtype() == DType::u8) return x;
  return is_float(x.dtype()) ? unary("abs", UnaryOp::abs, x) : maximum(x, neg(x));
}
Tensor tanh(const Tensor& x) { return unary("tanh", UnaryOp::tanh, x); }
Tensor softcap(const Tensor& x, double cap) {
  check(cap > 0 && std::isfinite(cap), "softcap",
        [&] { return "needs a finite cap > 0, got " + detail::shortest(cap); });
  return unary("softcap", UnaryOp::softcap, x, cap);
}
Tensor erf(const Tensor& x) { return unary("erf", UnaryOp::erf, x); }
Tensor sigmoid(const Tensor& x) { return unary("sigmoid", UnaryOp::sigmoid, x); }
Tensor silu(const Tensor& x) { return activation("silu", UnaryOp::silu, x); }
Tensor softplus(const Tensor& x) { return activation("softplus", UnaryOp::softplus, x); }
Tensor gelu(const Tensor& x) { return activation("gelu", UnaryOp::gelu_erf, x); }
Tensor gelu_tanh(const Tensor& x) { return activation("gelu_tanh", UnaryOp::gelu_tanh, x); }
Tensor relu(const Tensor& x) { return activation("relu", UnaryOp::relu, x); }
Tensor pow(const Tensor& x, double exponent) { return unary("pow", UnaryOp::pow, x, exponent); }
Tensor clamp(const Tensor& x, double low, double high) {
  check(low <= high, "clamp",
        [&] { return "the lower bound " + std::to_string(low) + " is above the upper bound " + std::to_string(high); });
  if (!is_float(x.dtype())) return minimum(maximum(x, number_like("clamp", low, x)), number_like("clamp", high, x));
  return unary("clamp", UnaryOp::clamp, x, low, high);
}

// y = value where mask, else x   dx = 0 where mask, else dy
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
  check_float("masked_fill", x);
  check_mask("masked_fill", mask);
  check(x.device() == mask.device(), "masked_fill",
        [&] { return str("x is on ", x.device(), ", the mask on ", mask.device()); });
  check(broadcast(x.shape(), mask.shape(), "masked_fill") == x.shape(), "masked_fill",
        [&] { return str("the mask's shape ", mask.shape(), " does not repeat to x's shape ", x.shape()); });
  Tensor y = empty_like(x);
  backend(x.device()).pointwise.masked_fill(x, mask.expanded(x.shape()), value, y);
  return record("masked_fill", y, {x, mask}, differentiable([mask](const Tensor& dy) -> Grads {
                  return {masked_fill(dy, mask, 0), {}};
                }));
}

// y = x where key s is unmasked for query t, else value   dx = dy where unmasked, else 0
Tensor mask_scores(const Tensor& x, const AttentionMask& given, double value) {
  const AttentionMask mask = given.checked("mask_scores");
  check_float("mask_scores", x);
  check(x.rank() >= 2, "mask_scores", [&] { return str("needs axes (..., T, S), got shape ", x.shape()); });
  check(mask.window >= 0, "mask_scores", [&] { return str("the window ", mask.window, " is negative"); });
  Tensor y = empty_like(x);
  backend(x.device()).pointwise.mask_scores(x, mask, value, y);
  return record("mask_scores", y, {x},
                differentiable([mask](const Tensor& dy) -> Grads { return {mask_scores(dy, mask, 0)}; }));
}

// y_i = x_i / (1-p) where u_i > p, else 0; u_i in (0, 1) is element i of the stream `key`.   dx = the same of dy
Tensor dropout(const Tensor& x, double p, RandomKey key) {
  check_float("dropout", x);
  check(p >= 0 && p < 1, "dropout", [&] { return "needs a probability in [0, 1), got " + detail::shortest(p); });
  if (p == 0) return x;
  Tensor y = empty_like(x);
  backend(x.device()).random.dropout(x, p, key, y);
  return record("dropout", y, {x}, differentiable([=](const Tensor& dy) -> Grads { return {dropout(dy, p, key)}; }));
}

// The same values in another type.   dx = dy in the type of x
Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  if (!is_float(dtype)) no_gradient("cast", x);
  return record("cast", x.detach().to(dtype), {x},
                differentiable([from = x.dtype()](const Tensor& dy) -> Grads { return {cast(dy, from)}; }));
}

// The same values on another device.   dx = dy on the device of x
Tensor to(const Tensor& x, Device device) {
  if (x.device() == device) return x;
  return record("to", x.detach().to(device), {x},
                differentiable([from = x.device()](const Tensor& dy) -> Grads { return {to(dy, from)}; }));
}

}  // namespace braid
