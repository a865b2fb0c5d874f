// Functions of numbers beside those of ops.h, element by element, with derivatives of every order where they have one.
//
// Two tensors broadcast and have one type, as everywhere. Of a tensor and a number the result has the type of the
// tensor. A mask is u8, 1 or 0; the functions that give masks take any type.
#pragma once
#include "braid/autograd/ops.h"

namespace braid {

// --- trigonometric, hyperbolic ---
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tan(const Tensor& x);
Tensor asin(const Tensor& x);
Tensor acos(const Tensor& x);
Tensor atan(const Tensor& x);
Tensor atan2(const Tensor& y, const Tensor& x);  // the angle of the point (x, y), in (-pi, pi]
Tensor sinh(const Tensor& x);
Tensor cosh(const Tensor& x);
Tensor asinh(const Tensor& x);
Tensor acosh(const Tensor& x);
Tensor atanh(const Tensor& x);
Tensor hypot(const Tensor& x, const Tensor& y);  // sqrt(x^2 + y^2); derivative 0 at (0, 0)
Tensor deg2rad(const Tensor& x);
Tensor rad2deg(const Tensor& x);

// --- exponentials, powers ---
Tensor erfc(const Tensor& x);   // 1 - erf(x)
Tensor exp2(const Tensor& x);   // 2^x
Tensor expm1(const Tensor& x);  // exp(x) - 1, exact near 0
Tensor log1p(const Tensor& x);  // log(1 + x), exact near 0
Tensor log2(const Tensor& x);
Tensor log10(const Tensor& x);
Tensor pow(const Tensor& x, const Tensor& y);  // the derivative in y is 0 where x = 0
Tensor pow(double base, const Tensor& y);
Tensor logaddexp(const Tensor& x, const Tensor& y);  // log(exp(x) + exp(y)), without overflow

// --- integers, signs, remainders; the slope of a step is 0 ---
Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
Tensor trunc(const Tensor& x);
Tensor round(const Tensor& x);                       // half to even
Tensor frac(const Tensor& x);                        // x - trunc(x)
Tensor sign(const Tensor& x);                        // -1, 0 or 1; NaN of NaN
Tensor copysign(const Tensor& x, const Tensor& y);   // |x| with the sign of y
Tensor fmod(const Tensor& x, const Tensor& y);       // with the sign of x, as in C
Tensor remainder(const Tensor& x, const Tensor& y);  // with the sign of y, as in Python
Tensor floor_divide(const Tensor& x, const Tensor& y);
Tensor nextafter(const Tensor& x, const Tensor& y);  // the number of the type after x towards y; no derivative
inline Tensor operator%(const Tensor& x, const Tensor& y) { return remainder(x, y); }

// --- activations ---
Tensor softplus(const Tensor& x);                         // log(1 + exp(x))
Tensor log_sigmoid(const Tensor& x);                      // -softplus(-x)
Tensor leaky_relu(const Tensor& x, double slope = 0.01);  // slope x for x < 0
Tensor elu(const Tensor& x, double alpha = 1);            // alpha (exp(x) - 1) for x < 0
Tensor celu(const Tensor& x, double alpha = 1);           // alpha (exp(x / alpha) - 1) for x < 0
Tensor selu(const Tensor& x);                             // Klambauer et al. 2017
Tensor mish(const Tensor& x);                             // x tanh(softplus(x))
Tensor softcap(const Tensor& x, double cap);              // cap tanh(x / cap), cap > 0: between -cap and cap
Tensor softsign(const Tensor& x);                         // x / (1 + |x|)
Tensor hardtanh(const Tensor& x, double low = -1, double high = 1);
Tensor hardsigmoid(const Tensor& x);  // clamp(x / 6 + 1/2, 0, 1)
Tensor hardswish(const Tensor& x);    // x hardsigmoid(x)
Tensor relu6(const Tensor& x);
Tensor lerp(const Tensor& x, const Tensor& y, double weight);  // x + weight (y - x)

// --- masks ---
Tensor isnan(const Tensor& x);
Tensor isinf(const Tensor& x);
Tensor isfinite(const Tensor& x);
Tensor signbit(const Tensor& x);  // also of -0 and of NaN
// |x - y| <= absolute + relative |y|, or equal; NaN is close to NaN if nan_equal.
Tensor isclose(const Tensor& x, const Tensor& y, double relative = 1e-5, double absolute = 1e-8,
               bool nan_equal = false);
bool allclose(const Tensor& x, const Tensor& y, double relative = 1e-5, double absolute = 1e-8, bool nan_equal = false);
bool equal(const Tensor& x, const Tensor& y);  // one shape, one type, equal values
// What is not 0 counts as true, in any type. There is no operator!: !x asks whether x is an empty handle.
Tensor logical_and(const Tensor& x, const Tensor& y);
Tensor logical_or(const Tensor& x, const Tensor& y);
Tensor logical_xor(const Tensor& x, const Tensor& y);
Tensor logical_not(const Tensor& x);
inline Tensor operator&(const Tensor& x, const Tensor& y) { return logical_and(x, y); }
inline Tensor operator|(const Tensor& x, const Tensor& y) { return logical_or(x, y); }
inline Tensor operator^(const Tensor& x, const Tensor& y) { return logical_xor(x, y); }
// NaN, +inf and -inf replaced by numbers.
Tensor nan_to_num(const Tensor& x, double nan, double positive, double negative);

// x += y is x = x + y: x becomes the handle of a new tensor, and other handles keep the old one. Nothing is written.
inline Tensor& operator+=(Tensor& x, const Tensor& y) { return x = x + y; }
inline Tensor& operator-=(Tensor& x, const Tensor& y) { return x = x - y; }
inline Tensor& operator*=(Tensor& x, const Tensor& y) { return x = x * y; }
inline Tensor& operator/=(Tensor& x, const Tensor& y) { return x = x / y; }
inline Tensor& operator+=(Tensor& x, double y) { return x = x + y; }
inline Tensor& operator-=(Tensor& x, double y) { return x = x - y; }
inline Tensor& operator*=(Tensor& x, double y) { return x = x * y; }
inline Tensor& operator/=(Tensor& x, double y) { return x = x / y; }

}  // namespace braid
