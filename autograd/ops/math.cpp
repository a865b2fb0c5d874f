// Functions of numbers. Each derivative is written with ops that record, so that all orders exist.
#include "braid/autograd/math.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/integer.h"
#include "braid/autograd/reductions.h"
#include "braid/tensor/kernels/backend.h"

namespace braid {

namespace {

Tensor value_of(const char* op, MathOp kind, const Tensor& x) {
  check_float(op, x);
  Tensor y = empty_like(x);
  backend(x.device()).math.unary(kind, x.detach().contiguous(), y);
  return y;
}

// y = f(x)   dx = dy slope(x), in the type of the arithmetic: the squares of an f16 are infinite from 256 on
template <class Slope>
Tensor function(const char* op, MathOp kind, const Tensor& x, Slope slope) {
  return record(op, value_of(op, kind, x), {x}, differentiable([=](const Tensor& dy) -> Grads {
                  const DType wide = accumulate_type(x.dtype());
                  return {cast(mul(cast(dy, wide), slope(cast(x, wide))), x.dtype())};
                }));
}

// y = f(x), constant in pieces   dx = 0
Tensor step(const char* op, MathOp kind, const Tensor& x) {
  return record(op, value_of(op, kind, x), {x}, differentiable([shape = x.shape()](const Tensor& dy) -> Grads {
                  return {zeros(shape, dy.dtype(), dy.device())};
                }));
}

Tensor value_of(const char* op, MathOp2 kind, const Tensor& x, const Tensor& y) {
  check_float(op, x);
  check_same(op, x, y);
  const Shape shape = broadcast(x.shape(), y.shape(), op);
  Tensor z = empty(shape, x.dtype(), x.device());
  backend(x.device())
      .math.binary(kind, x.detach().expanded(shape).contiguous(), y.detach().expanded(shape).contiguous(), z);
  return z;
}

// z = f(x, y)   dx = x_slope(x, y, dz), dy = y_slope(x, y, dz), summed over repeated axes
template <class XSlope, class YSlope>
Tensor function(const char* op, MathOp2 kind, const Tensor& x, const Tensor& y, XSlope x_slope, YSlope y_slope) {
  return record(op, value_of(op, kind, x, y), {x, y}, differentiable([=](const Tensor& dz) -> Grads {
                  return {requires_grad(x) ? sum_to(x_slope(x, y, dz), x.shape()) : Tensor(),
                          requires_grad(y) ? sum_to(y_slope(x, y, dz), y.shape()) : Tensor()};
                }));
}

Tensor constant(const Tensor& like, double value) { return full({}, value, like.dtype(), like.device()); }

// x where the mask is 1, else 0, also where x is infinite there
Tensor only(const Tensor& mask, const Tensor& x) { return where(mask, x, constant(x, 0)); }

}  // namespace

Tensor sin(const Tensor& x) {
  return function("sin", MathOp::sin, x, [](const Tensor& v) { return cos(v); });
}
Tensor cos(const Tensor& x) {
  return function("cos", MathOp::cos, x, [](const Tensor& v) { return neg(sin(v)); });
}
Tensor tan(const Tensor& x) {  // 1 + tan^2
  return function("tan", MathOp::tan, x, [](const Tensor& v) { return square(tan(v)) + 1; });
}
Tensor asin(const Tensor& x) {
  return function("asin", MathOp::asin, x, [](const Tensor& v) { return rsqrt(1 - square(v)); });
}
Tensor acos(const Tensor& x) {
  return function("acos", MathOp::acos, x, [](const Tensor& v) { return neg(rsqrt(1 - square(v))); });
}
Tensor atan(const Tensor& x) {
  return function("atan", MathOp::atan, x, [](const Tensor& v) { return reciprocal(square(v) + 1); });
}
Tensor sinh(const Tensor& x) {
  return function("sinh", MathOp::sinh, x, [](const Tensor& v) { return cosh(v); });
}
Tensor cosh(const Tensor& x) {
  return function("cosh", MathOp::cosh, x, [](const Tensor& v) { return sinh(v); });
}
Tensor asinh(const Tensor& x) {
  return function("asinh", MathOp::asinh, x, [](const Tensor& v) { return rsqrt(square(v) + 1); });
}
Tensor acosh(const Tensor& x) {
  return function("acosh", MathOp::acosh, x, [](const Tensor& v) { return rsqrt(square(v) - 1); });
}
Tensor atanh(const Tensor& x) {
  return function("atanh", MathOp::atanh, x, [](const Tensor& v) { return reciprocal(1 - square(v)); });
}

// With r^2 = x^2 + y^2: dy = da x / r^2, dx = -da y / r^2
Tensor atan2(const Tensor& y, const Tensor& x) {
  const auto over_square = [](const Tensor& a, const Tensor& b, const Tensor& g) {
    const Tensor r = hypot(a, b);
    return div(div(g, r), r);
  };
  return function(
      "atan2", MathOp2::atan2, y, x,
      [=](const Tensor& a, const Tensor& b, const Tensor& g) { return mul(over_square(a, b, g), b); },
      [=](const Tensor& a, const Tensor& b, const Tensor& g) { return neg(mul(over_square(a, b, g), a)); });
}

// dx = dz x / z, dy = dz y / z
Tensor hypot(const Tensor& x, const Tensor& y) {
  const auto share = [](const Tensor& of, const Tensor& a, const Tensor& b, const Tensor& g) {
    const Tensor r = hypot(a, b), zero = eq(r.detach(), 0.0);
    return mul(g, div(of, where(zero, constant(r, 1), r)));
  };
  return function(
      "hypot", MathOp2::hypot, x, y,
      [=](const Tensor& a, const Tensor& b, const Tensor& g) { return share(a, a, b, g); },
      [=](const Tensor& a, const Tensor& b, const Tensor& g) { return share(b, a, b, g); });
}

Tensor deg2rad(const Tensor& x) { return scale(x, std::numbers::pi / 180); }
Tensor rad2deg(const Tensor& x) { return scale(x, 180 / std::numbers::pi); }

Tensor erfc(const Tensor& x) {
  return function("erfc", MathOp::erfc, x,
                  [](const Tensor& v) { return scale(exp(neg(square(v))), -2 / std::sqrt(std::numbers::pi)); });
}
Tensor exp2(const Tensor& x) {
  return function("exp2", MathOp::exp2, x, [](const Tensor& v) { return scale(exp2(v), std::numbers::ln2); });
}
Tensor expm1(const Tensor& x) {
  return function("expm1", MathOp::expm1, x, [](const Tensor& v) { return exp(v); });
}
Tensor log1p(const Tensor& x) {
  return function("log1p", MathOp::log1p, x, [](const Tensor& v) { return reciprocal(v + 1); });
}
Tensor log2(const Tensor& x) {
  return function("log2", MathOp::log2, x, [](const Tensor& v) { return std::numbers::log2e / v; });
}
Tensor log10(const Tensor& x) {
  return function("log10", MathOp::log10, x, [](const Tensor& v) { return std::numbers::log10e / v; });
}

// dx = dz y x^(y - 1), 0 where y = 0, whose slope in y is 1 / x;   dy = dz x^y log x, 0 where x = 0
Tensor pow(const Tensor& x, const Tensor& y) {
  return function(
      "pow", MathOp2::pow, x, y,
      [](const Tensor& a, const Tensor& b, const Tensor& g) {
        // Where y = 0 and 1 / x is no number, the slope would be 0 times that.
        const Tensor flat = no_grad([&] { return logical_and(eq(b, 0.0), logical_not(isfinite(reciprocal(a)))); });
        return mul(g, mul(b, pow(where(flat, constant(a, 1), a), b - 1)));
      },
      [](const Tensor& a, const Tensor& b, const Tensor& g) {
        const Tensor base = where(eq(a, 0.0), constant(a, 1), a);
        return mul(g, mul(pow(base, b), log(base)));
      });
}
Tensor pow(double base, const Tensor& y) { return pow(constant(y, base), y); }

// z = m + log(1 + exp(-|x - y|)), m the larger one   dx = dz sigmoid(x - y), dy = dz sigmoid(y - x)
Tensor logaddexp(const Tensor& x, const Tensor& y) {
  check_float("logaddexp", x);
  check_same("logaddexp", x, y);
  const Tensor z = no_grad([&] {
    const Tensor larger = maximum(x, y), smaller = minimum(x, y);
    // Equal infinities have no difference.
    const Tensor apart = where(eq(larger, smaller), constant(x, 0), sub(smaller, larger));
    return add(larger, log1p(exp(apart)));
  });
  return record("logaddexp", z, {x, y}, differentiable([=](const Tensor& dz) -> Grads {
                  const Tensor none = no_grad([&] { return logical_and(eq(x, y), isinf(x)); });  // nor a gradient
                  const auto part = [&](const Tensor& a, const Tensor& b) {
                    if (!requires_grad(a)) return Tensor();
                    const Tensor apart = where(none, constant(a, -std::numeric_limits<double>::infinity()), sub(a, b));
                    return sum_to(mul(dz, sigmoid(apart)), a.shape());
                  };
                  return {part(x, y), part(y, x)};
                }));
}

Tensor floor(const Tensor& x) { return step("floor", MathOp::floor, x); }
Tensor ceil(const Tensor& x) { return step("ceil", MathOp::ceil, x); }
Tensor trunc(const Tensor& x) { return step("trunc", MathOp::trunc, x); }
Tensor round(const Tensor& x) { return step("round", MathOp::round, x); }
Tensor frac(const Tensor& x) {
  const CalledOp called("frac");
  return sub(x, trunc(x));
}

Tensor sign(const Tensor& x) {
  check_float("sign", x);
  const Tensor y = no_grad([&] {
    const Tensor one = constant(x, 1), signs = where(gt(x, 0.0), one, where(lt(x, 0.0), neg(one), constant(x, 0)));
    return where(ne(x, x), x, signs);
  });
  return record("sign", y, {x}, differentiable([shape = x.shape()](const Tensor& dy) -> Grads {
                  return {zeros(shape, dy.dtype(), dy.device())};
                }));
}

// dx = dz where the signs of x and z are equal, else -dz; 0 at 0
Tensor copysign(const Tensor& x, const Tensor& y) {
  return function(
      "copysign", MathOp2::copysign, x, y,
      [](const Tensor& a, const Tensor& b, const Tensor& g) {
        const Tensor factor =
            no_grad([&] { return mul(sign(a), sign(copysign(ones(a.shape(), a.dtype(), a.device()), b))); });
        return mul(g, factor);
      },
      [](const Tensor&, const Tensor& b, const Tensor& g) {
        return zeros(broadcast(g.shape(), b.shape(), "copysign"), g.dtype(), g.device());
      });
}

namespace {
Tensor itself(const Tensor&, const Tensor&, const Tensor& g) { return g; }
}  // namespace

// dx = dz, dy = -dz trunc(x / y), of the exact quotient: that of the type may be rounded up to an integer
Tensor fmod(const Tensor& x, const Tensor& y) {
  return function("fmod", MathOp2::fmod, x, y, itself, [](const Tensor& a, const Tensor& b, const Tensor& g) {
    return neg(mul(g, no_grad([&] { return round(div(sub(a, fmod(a, b)), b)); })));
  });
}
// dx = dz, dy = -dz floor(x / y)
Tensor remainder(const Tensor& x, const Tensor& y) {
  if (!is_float(x.dtype())) return integer_binary("remainder", IntegerOp::remainder, x, y);
  return function("remainder", MathOp2::remainder, x, y, itself, [](const Tensor& a, const Tensor& b, const Tensor& g) {
    return neg(mul(g, no_grad([&] { return floor_divide(a, b); })));
  });
}
Tensor floor_divide(const Tensor& x, const Tensor& y) {
  if (!is_float(x.dtype())) return integer_binary("floor_divide", IntegerOp::floor_divide, x, y);
  const CalledOp called("floor_divide");
  // (x - r) / y is an integer up to a rounding: floor(x / y) is one too large where x / y is rounded up to an integer.
  // The remainder is infinite, that is y, where y is and x has the other sign.
  const Tensor r = remainder(x, y), q = round(div(sub(x, r), y));
  return where(isinf(r), full({}, -1, q.dtype(), q.device()), q);
}

Tensor nextafter(const Tensor& x, const Tensor& y) {
  no_gradient("nextafter", x);
  no_gradient("nextafter", y);
  check(x.dtype() == DType::f32 || x.dtype() == DType::f64, "nextafter",
        [&] { return str("needs f32 or f64, got ", x.dtype()); });
  return value_of("nextafter", MathOp2::nextafter, x, y);
}

Tensor log_sigmoid(const Tensor& x) {
  const CalledOp called("log_sigmoid");
  return neg(softplus(neg(x)));
}
Tensor leaky_relu(const Tensor& x, double slope) {
  const CalledOp called("leaky_relu");
  return where(lt(x.detach(), 0.0), scale(x, slope), x);
}
Tensor elu(const Tensor& x, double alpha) {
  const CalledOp called("elu");
  const Tensor below = lt(x.detach(), 0.0);
  return where(below, scale(expm1(only(below, x)), alpha), x);  // of numbers below 0 alone: no overflow
}
Tensor celu(const Tensor& x, double alpha) {
  const CalledOp called("celu");
  check(alpha != 0, "celu", "needs an alpha that is not 0");
  const Tensor below = lt(x.detach(), 0.0);
  return where(below, scale(expm1(only(below, x) / alpha), alpha), x);
}
Tensor selu(const Tensor& x) {
  const CalledOp called("selu");
  return scale(elu(x, 1.6732632423543772848170429916717), 1.0507009873554804934193349852946);
}
Tensor mish(const Tensor& x) {
  const CalledOp called("mish");
  return mul(x, tanh(softplus(x)));
}
Tensor softsign(const Tensor& x) {
  const CalledOp called("softsign");
  return div(x, abs(x) + 1);
}
Tensor hardtanh(const Tensor& x, double low, double high) {
  const CalledOp called("hardtanh");
  return clamp(x, low, high);
}
Tensor hardsigmoid(const Tensor& x) {
  const CalledOp called("hardsigmoid");
  return clamp(affine(x, 1. / 6, 0.5), 0, 1);
}
Tensor hardswish(const Tensor& x) {
  const CalledOp called("hardswish");
  return mul(x, hardsigmoid(x));
}
Tensor relu6(const Tensor& x) {
  const CalledOp called("relu6");
  return clamp(x, 0, 6);
}
Tensor lerp(const Tensor& x, const Tensor& y, double weight) {
  const CalledOp called("lerp");
  return add(x, scale(sub(y, x), weight));
}

Tensor isnan(const Tensor& x) { return ne(x, x); }
Tensor isinf(const Tensor& x) {
  if (!is_float(x.dtype())) return zeros(x.shape(), DType::u8, x.device());
  return eq(no_grad([&] { return abs(x); }), std::numeric_limits<double>::infinity());
}
Tensor isfinite(const Tensor& x) {
  if (!is_float(x.dtype())) return full(x.shape(), 1, DType::u8, x.device());
  return lt(no_grad([&] { return abs(x); }), std::numeric_limits<double>::infinity());
}
Tensor signbit(const Tensor& x) {
  if (!is_float(x.dtype())) return lt(x, 0.0);
  const NoGrad off;
  return lt(copysign(ones(x.shape(), x.dtype(), x.device()), x), 0.0);
}

namespace {
// |x - y|; of integers in f64, from their difference or, where that does not fit their type, from their values.
Tensor distance(const Tensor& x, const Tensor& y) {
  if (is_float(x.dtype())) return abs(sub(x, y));
  const Tensor gap = cast(sub(maximum(x, y), minimum(x, y)), DType::f64);
  return where(lt(gap, 0.0), abs(sub(cast(x, DType::f64), cast(y, DType::f64))), gap);
}
}  // namespace

Tensor isclose(const Tensor& x, const Tensor& y, double relative, double absolute, bool nan_equal) {
  const CalledOp called("isclose");
  const NoGrad off;
  Tensor close = eq(x, y);
  const Tensor apart = distance(x, y), near = le(apart, affine(abs(cast(y, apart.dtype())), relative, absolute));
  close = logical_or(close, logical_and(near, isfinite(y)));
  return nan_equal ? logical_or(close, logical_and(isnan(x), isnan(y))) : close;
}
bool allclose(const Tensor& x, const Tensor& y, double relative, double absolute, bool nan_equal) {
  const CalledOp called("allclose");
  return all(isclose(x, y, relative, absolute, nan_equal)).item() != 0;
}
bool equal(const Tensor& x, const Tensor& y) {
  if (!(x.shape() == y.shape()) || x.dtype() != y.dtype()) return false;
  return all(eq(x, y)).item() != 0;
}

// As comparisons of masks: a and b is b > not a, a or b is b >= not a.
Tensor logical_and(const Tensor& x, const Tensor& y) {
  const CalledOp called("logical_and");
  return gt(ne(y, 0.0), logical_not(x));
}
Tensor logical_or(const Tensor& x, const Tensor& y) {
  const CalledOp called("logical_or");
  return ge(ne(y, 0.0), logical_not(x));
}
Tensor logical_xor(const Tensor& x, const Tensor& y) {
  const CalledOp called("logical_xor");
  return ne(ne(y, 0.0), ne(x, 0.0));
}
Tensor logical_not(const Tensor& x) { return eq(x, 0.0); }

// dx = dy where x is finite, else 0
Tensor nan_to_num(const Tensor& x, double nan, double positive, double negative) {
  const CalledOp called("nan_to_num");
  check_float("nan_to_num", x);
  const Tensor plain = x.detach();
  const Tensor number =
      where(isnan(plain), constant(x, nan), where(gt(plain, 0.0), constant(x, positive), constant(x, negative)));
  return where(isfinite(plain), x, number);
}

}  // namespace braid
