// Pointwise functions: value and slope of each, once, for the CPU, for CUDA and for the backward pass.
//
// Every functor is a template over the accumulation type A (float or double). a and b are the op's scalar parameters.
#pragma once
#include <cmath>

#include "braid/tensor/device_code.h"

// math::exp, log, tanh, erf: branch-free f32 versions on the CPU, the card's own under CUDA; f64 is the C library's.
#if defined(__CUDACC__)
namespace braid::math {
BRAID_HD float exp(float x) { return ::expf(x); }
BRAID_HD float log(float x) { return ::logf(x); }
BRAID_HD float tanh(float x) { return ::tanhf(x); }
BRAID_HD float erf(float x) { return ::erff(x); }
BRAID_HD double exp(double x) { return ::exp(x); }
BRAID_HD double log(double x) { return ::log(x); }
BRAID_HD double tanh(double x) { return ::tanh(x); }
BRAID_HD double erf(double x) { return ::erf(x); }
}  // namespace braid::math
#else
#include "braid/tensor/cpu/math.h"
#endif

namespace braid {

enum class UnaryOp : unsigned char {
  affine,  // a x + b
  exp,
  log,
  sqrt,
  rsqrt,
  square,
  reciprocal,
  abs,
  tanh,
  sigmoid,
  silu,       // x sigmoid(x)
  gelu_erf,   // x Phi(x)
  gelu_tanh,  // the tanh approximation of GELU
  relu,
  power,  // x^a
  clamp,  // min(max(x, a), b)
};

enum class BinaryOp : unsigned char {
  add,
  sub,
  mul,
  div,
  maximum,
  minimum,
  swiglu,  // silu(x) y
};

namespace pointwise {

inline constexpr double kSqrtHalf = 0.70710678118654752440, kInvSqrt2Pi = 0.39894228040143267794;
inline constexpr double kSqrt2OverPi = 0.79788456080286535588, kGeluCubic = 0.044715;

template <class A>
BRAID_HD A sigmoid(A x) {
  return A(1) / (A(1) + math::exp(-x));
}

// value(x) and slope(x) = d value / dx.
template <UnaryOp op, class A>
BRAID_HD A value(A x, A a, A b) {
  if constexpr (op == UnaryOp::affine) return a * x + b;
  if constexpr (op == UnaryOp::exp) return math::exp(x);
  if constexpr (op == UnaryOp::log) return math::log(x);
  if constexpr (op == UnaryOp::sqrt) return std::sqrt(x);
  if constexpr (op == UnaryOp::rsqrt) return A(1) / std::sqrt(x);
  if constexpr (op == UnaryOp::square) return x * x;
  if constexpr (op == UnaryOp::reciprocal) return A(1) / x;
  if constexpr (op == UnaryOp::abs) return std::fabs(x);
  if constexpr (op == UnaryOp::tanh) return math::tanh(x);
  if constexpr (op == UnaryOp::sigmoid) return sigmoid(x);
  if constexpr (op == UnaryOp::silu) return x * sigmoid(x);
  if constexpr (op == UnaryOp::gelu_erf) return x * A(0.5) * (A(1) + math::erf(x * A(kSqrtHalf)));
  if constexpr (op == UnaryOp::gelu_tanh) {
    return A(0.5) * x * (A(1) + math::tanh(A(kSqrt2OverPi) * (x + A(kGeluCubic) * x * x * x)));
  }
  if constexpr (op == UnaryOp::relu) return x > A(0) || x != x ? x : A(0);  // NaN stays visible
  if constexpr (op == UnaryOp::power) return std::pow(x, a);
  if constexpr (op == UnaryOp::clamp) return x < a ? a : x > b ? b : x;
}

template <UnaryOp op, class A>
BRAID_HD A slope(A x, A a, A b) {
  if constexpr (op == UnaryOp::affine) return a;
  if constexpr (op == UnaryOp::exp) return math::exp(x);
  if constexpr (op == UnaryOp::log) return A(1) / x;
  if constexpr (op == UnaryOp::sqrt) return A(0.5) / std::sqrt(x);
  if constexpr (op == UnaryOp::rsqrt) return A(-0.5) / (x * std::sqrt(x));
  if constexpr (op == UnaryOp::square) return A(2) * x;
  if constexpr (op == UnaryOp::reciprocal) return A(-1) / (x * x);
  if constexpr (op == UnaryOp::abs) return x > A(0) ? A(1) : x < A(0) ? A(-1) : A(0);
  if constexpr (op == UnaryOp::tanh) {
    A t = math::tanh(x);
    return A(1) - t * t;
  }
  if constexpr (op == UnaryOp::sigmoid) {
    A s = sigmoid(x);
    return s * (A(1) - s);
  }
  if constexpr (op == UnaryOp::silu) {
    A s = sigmoid(x);
    return s * (A(1) + x * (A(1) - s));
  }
  if constexpr (op == UnaryOp::gelu_erf) {  // Phi(x) + x phi(x)
    return A(0.5) * (A(1) + math::erf(x * A(kSqrtHalf))) + x * A(kInvSqrt2Pi) * math::exp(A(-0.5) * x * x);
  }
  if constexpr (op == UnaryOp::gelu_tanh) {
    A u = A(kSqrt2OverPi) * (x + A(kGeluCubic) * x * x * x), t = math::tanh(u);
    return A(0.5) * (A(1) + t) + A(0.5) * x * (A(1) - t * t) * A(kSqrt2OverPi) * (A(1) + A(3 * kGeluCubic) * x * x);
  }
  if constexpr (op == UnaryOp::relu) return x > A(0) ? A(1) : A(0);
  if constexpr (op == UnaryOp::power) return a * std::pow(x, a - A(1));
  if constexpr (op == UnaryOp::clamp) return x < a || x > b ? A(0) : A(1);
}

// value(x, y), and the slopes in x and in y. Ties of maximum and minimum go to x.
template <BinaryOp op, class A>
BRAID_HD A value(A x, A y) {
  if constexpr (op == BinaryOp::add) return x + y;
  if constexpr (op == BinaryOp::sub) return x - y;
  if constexpr (op == BinaryOp::mul) return x * y;
  if constexpr (op == BinaryOp::div) return x / y;
  if constexpr (op == BinaryOp::maximum) return y > x || y != y ? y : x;
  if constexpr (op == BinaryOp::minimum) return y < x || y != y ? y : x;
  if constexpr (op == BinaryOp::swiglu) return x * sigmoid(x) * y;
}

template <BinaryOp op, class A>
BRAID_HD A slope_x(A x, A y) {
  if constexpr (op == BinaryOp::add || op == BinaryOp::sub) return A(1);
  if constexpr (op == BinaryOp::mul) return y;
  if constexpr (op == BinaryOp::div) return A(1) / y;
  if constexpr (op == BinaryOp::maximum) return y > x ? A(0) : A(1);
  if constexpr (op == BinaryOp::minimum) return y < x ? A(0) : A(1);
  if constexpr (op == BinaryOp::swiglu) return slope<UnaryOp::silu>(x, A(0), A(0)) * y;
}

template <BinaryOp op, class A>
BRAID_HD A slope_y(A x, A y) {
  if constexpr (op == BinaryOp::add) return A(1);
  if constexpr (op == BinaryOp::sub) return A(-1);
  if constexpr (op == BinaryOp::mul) return x;
  if constexpr (op == BinaryOp::div) return -x / (y * y);
  if constexpr (op == BinaryOp::maximum) return y > x ? A(1) : A(0);
  if constexpr (op == BinaryOp::minimum) return y < x ? A(1) : A(0);
  if constexpr (op == BinaryOp::swiglu) return x * sigmoid(x);
}

// visit(op, [&]<UnaryOp o>() { ... });  turns an op known at run time into a template argument.
template <class F>
BRAID_HD void visit(UnaryOp op, F&& f) {
  switch (op) {
#define BRAID_CASE(o) \
  case UnaryOp::o:    \
    return f.template operator()<UnaryOp::o>();
    BRAID_CASE(affine)
    BRAID_CASE(exp)
    BRAID_CASE(log)
    BRAID_CASE(sqrt)
    BRAID_CASE(rsqrt)
    BRAID_CASE(square)
    BRAID_CASE(reciprocal)
    BRAID_CASE(abs)
    BRAID_CASE(tanh)
    BRAID_CASE(sigmoid)
    BRAID_CASE(silu)
    BRAID_CASE(gelu_erf)
    BRAID_CASE(gelu_tanh)
    BRAID_CASE(relu)
    BRAID_CASE(power)
    BRAID_CASE(clamp)
#undef BRAID_CASE
  }
}

template <class F>
BRAID_HD void visit(BinaryOp op, F&& f) {
  switch (op) {
#define BRAID_CASE(o) \
  case BinaryOp::o:   \
    return f.template operator()<BinaryOp::o>();
    BRAID_CASE(add)
    BRAID_CASE(sub)
    BRAID_CASE(mul)
    BRAID_CASE(div)
    BRAID_CASE(maximum)
    BRAID_CASE(minimum)
    BRAID_CASE(swiglu)
#undef BRAID_CASE
  }
}

}  // namespace pointwise
}  // namespace braid
