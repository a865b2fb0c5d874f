// The pointwise functions: each with its derivative, once, for every device and for the backward pass.
//
// To add a function: its enumerator in UnaryOp or BinaryOp, before `count`, and its Unary or Binary, which holds
// forward and backward in the accumulation type A (float or double). Call braid::math in it; of std:: only sqrt, fabs
// and the like, which the compiler vectorises.
//
// At infinity a function has its limit, and so has its slope. A NaN gives NaN, also as a slope, except where
// comparisons choose the slope: relu, maximum and minimum pass the gradient on there, abs and clamp do not. Gradients
// that are not passed on become 0 without a product, which would be NaN for an infinite one.
#pragma once
#include <limits>
#include <utility>

#include "braid/tensor/kernels/math.h"
#include "braid/tensor/kernels/pointwise.h"

namespace braid {

enum class UnaryOp : unsigned char {
  affine,    // a x + b
  quotient,  // x / a, rounded once
  inverse,   // a / x
  exp,
  log,
  sqrt,
  rsqrt,
  square,
  abs,
  tanh,
  erf,
  sigmoid,
  silu,       // x sigmoid(x)
  softplus,   // log(1 + exp(x))
  gelu_erf,   // x Phi(x)
  gelu_tanh,  // the tanh approximation of GELU
  relu,
  pow,      // x^a
  cube,     // x^3: what pow becomes there, see simplest()
  clamp,    // min(max(x, a), b)
  softcap,  // a tanh(x / a)
  // (new functions of one input here)
  count  // of the functions above
};

enum class BinaryOp : unsigned char {
  add,
  sub,
  mul,
  div,
  maximum,
  minimum,
  swiglu,  // silu(x) y
  // (new functions of two inputs here)
  count  // of the functions above
};

namespace pointwise {

inline constexpr double kSqrtHalf = 0.70710678118654752440, kInvSqrt2Pi = 0.39894228040143267794;
inline constexpr double k2OverSqrtPi = 1.12837916709551257390;
inline constexpr double kSqrt2OverPi = 0.79788456080286535588, kGeluCubic = 0.044715;

template <class A>
BRAID_HD A sigmoid(A x) {
  return A(1) / (A(1) + math::exp(-x));
}

// x, or the number of type A next to an infinity, so that its product with 0 is 0. A NaN stays one.
template <class A>
BRAID_HD A above_minus_infinity(A x) {
  constexpr A kLowest = std::numeric_limits<A>::lowest();
  return x < kLowest ? kLowest : x;
}
template <class A>
BRAID_HD A finite(A x) {
  constexpr A kHighest = std::numeric_limits<A>::max();
  return x > kHighest ? kHighest : above_minus_infinity(x);
}

// forward(x, a, b), and backward(g, x, a, b) = g times d forward / dx; a and b are the scalar parameters of the op.
template <UnaryOp op, class A>
struct Unary;

template <class A>
struct Unary<UnaryOp::affine, A> {  // a x + b
  BRAID_HD static A forward(A x, A a, A b) { return a * x + b; }
  BRAID_HD static A backward(A g, A, A a, A) { return g * a; }
};

template <class A>
struct Unary<UnaryOp::quotient, A> {  // x / a
  BRAID_HD static A forward(A x, A a, A) { return x / a; }
  BRAID_HD static A backward(A g, A, A a, A) { return g / a; }
};

template <class A>
struct Unary<UnaryOp::inverse, A> {  // a / x
  BRAID_HD static A forward(A x, A a, A) { return a / x; }
  BRAID_HD static A backward(A g, A x, A a, A) { return g * (-(a / x) / x); }  // x x would overflow
};

template <class A>
struct Unary<UnaryOp::exp, A> {
  BRAID_HD static A forward(A x, A, A) { return math::exp(x); }
  BRAID_HD static A backward(A g, A x, A, A) { return g * math::exp(x); }
};

template <class A>
struct Unary<UnaryOp::log, A> {
  BRAID_HD static A forward(A x, A, A) { return math::log(x); }
  BRAID_HD static A backward(A g, A x, A, A) { return g / x; }
};

template <class A>
struct Unary<UnaryOp::sqrt, A> {
  BRAID_HD static A forward(A x, A, A) { return std::sqrt(x); }
  BRAID_HD static A backward(A g, A x, A, A) { return g / (A(2) * std::sqrt(x)); }
};

template <class A>
struct Unary<UnaryOp::rsqrt, A> {  // 1 / sqrt(x)
  BRAID_HD static A forward(A x, A, A) { return A(1) / std::sqrt(x); }
  BRAID_HD static A backward(A g, A x, A, A) {
    const A r = A(1) / std::sqrt(x);
    return g * (A(-0.5) * r * r * r);  // x sqrt(x) would overflow
  }
};

template <class A>
struct Unary<UnaryOp::square, A> {
  BRAID_HD static A forward(A x, A, A) { return x * x; }
  BRAID_HD static A backward(A g, A x, A, A) { return g * (A(2) * x); }
};

template <class A>
struct Unary<UnaryOp::abs, A> {
  BRAID_HD static A forward(A x, A, A) { return std::fabs(x); }
  BRAID_HD static A backward(A g, A x, A, A) { return x > A(0) ? g : x < A(0) ? -g : A(0); }
};

template <class A>
struct Unary<UnaryOp::tanh, A> {
  BRAID_HD static A forward(A x, A, A) { return math::tanh(x); }
  BRAID_HD static A backward(A g, A x, A, A) {
    const A t = math::tanh(x);
    return g * (A(1) - t * t);
  }
};

template <class A>
struct Unary<UnaryOp::erf, A> {  // slope: 2/sqrt(pi) exp(-x^2)
  BRAID_HD static A forward(A x, A, A) { return math::erf(x); }
  BRAID_HD static A backward(A g, A x, A, A) { return g * (A(k2OverSqrtPi) * math::exp(-x * x)); }
};

template <class A>
struct Unary<UnaryOp::sigmoid, A> {
  BRAID_HD static A forward(A x, A, A) { return pointwise::sigmoid(x); }
  BRAID_HD static A backward(A g, A x, A, A) {
    const A s = pointwise::sigmoid(x);
    return g * (s * (A(1) - s));
  }
};

template <class A>
struct Unary<UnaryOp::silu, A> {
  BRAID_HD static A forward(A x, A, A) { return above_minus_infinity(x) * sigmoid(x); }
  BRAID_HD static A backward(A g, A x, A, A) {
    const A s = sigmoid(x);
    return g * (s * (A(1) + finite(x) * (A(1) - s)));
  }
};

template <class A>
struct Unary<UnaryOp::softplus, A> {  // max(x, 0) + log(1 + exp(-|x|))
  BRAID_HD static A forward(A x, A, A) {
    const A positive = x < A(0) ? A(0) : x;  // a NaN stays one
    return positive + math::log1p_of_exp(std::fabs(x));
  }
  BRAID_HD static A backward(A g, A x, A, A) { return g * pointwise::sigmoid(x); }
};

template <class A>
struct Unary<UnaryOp::gelu_erf, A> {  // slope: Phi(x) + x phi(x)
  BRAID_HD static A forward(A value, A, A) {
    const A x = above_minus_infinity(value);
    return x * A(0.5) * (A(1) + math::erf(x * A(kSqrtHalf)));
  }
  BRAID_HD static A backward(A g, A value, A, A) {
    const A x = finite(value);
    return g * (A(0.5) * (A(1) + math::erf(x * A(kSqrtHalf))) + x * A(kInvSqrt2Pi) * math::exp(A(-0.5) * x * x));
  }
};

template <class A>
struct Unary<UnaryOp::gelu_tanh, A> {
  BRAID_HD static A forward(A value, A, A) {
    const A x = above_minus_infinity(value);
    return A(0.5) * x * (A(1) + math::tanh(A(kSqrt2OverPi) * (x + A(kGeluCubic) * x * x * x)));
  }
  BRAID_HD static A backward(A g, A value, A, A) {
    // Beyond 10 tanh is 1 in every digit; x^2 and x^3 would overflow.
    const A x = value < A(-10) ? A(-10) : value > A(10) ? A(10) : value;
    const A u = A(kSqrt2OverPi) * (x + A(kGeluCubic) * x * x * x), t = math::tanh(u);
    return g *
           (A(0.5) * (A(1) + t) + A(0.5) * x * (A(1) - t * t) * A(kSqrt2OverPi) * (A(1) + A(3 * kGeluCubic) * x * x));
  }
};

template <class A>
struct Unary<UnaryOp::relu, A> {  // a NaN stays one
  BRAID_HD static A forward(A x, A, A) { return x > A(0) || x != x ? x : A(0); }
  BRAID_HD static A backward(A g, A x, A, A) { return x <= A(0) ? A(0) : g; }
};

template <class A>
struct Unary<UnaryOp::pow, A> {
  BRAID_HD static A forward(A x, A a, A) { return math::pow(x, a); }
  BRAID_HD static A backward(A g, A x, A a, A) { return a == A(0) ? A(0) : g * (a * math::pow(x, a - A(1))); }
};

template <class A>
struct Unary<UnaryOp::cube, A> {
  BRAID_HD static A forward(A x, A, A) { return x * x * x; }
  BRAID_HD static A backward(A g, A x, A, A) { return g * (A(3) * x * x); }
};

template <class A>
struct Unary<UnaryOp::clamp, A> {
  BRAID_HD static A forward(A x, A a, A b) { return x < a ? a : x > b ? b : x; }
  BRAID_HD static A backward(A g, A x, A a, A b) { return x >= a && x <= b ? g : A(0); }
};

template <class A>
struct Unary<UnaryOp::softcap, A> {  // slope: 1 - tanh(x / a)^2
  BRAID_HD static A forward(A x, A a, A) { return a * math::tanh(x / a); }
  BRAID_HD static A backward(A g, A x, A a, A) {
    const A t = math::tanh(x / a);
    return g * (A(1) - t * t);
  }
};

// forward(x, y), and d_dx and d_dy: g times its derivatives.
template <BinaryOp op, class A>
struct Binary;

template <class A>
struct Binary<BinaryOp::add, A> {
  BRAID_HD static A forward(A x, A y) { return x + y; }
  BRAID_HD static A d_dx(A g, A, A) { return g; }
  BRAID_HD static A d_dy(A g, A, A) { return g; }
};

template <class A>
struct Binary<BinaryOp::sub, A> {
  BRAID_HD static A forward(A x, A y) { return x - y; }
  BRAID_HD static A d_dx(A g, A, A) { return g; }
  BRAID_HD static A d_dy(A g, A, A) { return -g; }
};

template <class A>
struct Binary<BinaryOp::mul, A> {
  BRAID_HD static A forward(A x, A y) { return x * y; }
  BRAID_HD static A d_dx(A g, A, A y) { return g * y; }
  BRAID_HD static A d_dy(A g, A x, A) { return g * x; }
};

template <class A>
struct Binary<BinaryOp::div, A> {
  BRAID_HD static A forward(A x, A y) { return x / y; }
  BRAID_HD static A d_dx(A g, A, A y) { return g / y; }
  BRAID_HD static A d_dy(A g, A x, A y) { return g * (-(x / y) / y); }  // y y would overflow
};

template <class A>
struct Binary<BinaryOp::maximum, A> {  // ties go to x
  BRAID_HD static A forward(A x, A y) { return y > x || y != y ? y : x; }
  BRAID_HD static A d_dx(A g, A x, A y) { return y > x ? A(0) : g; }
  BRAID_HD static A d_dy(A g, A x, A y) { return x >= y ? A(0) : g; }
};

template <class A>
struct Binary<BinaryOp::minimum, A> {  // ties go to x
  BRAID_HD static A forward(A x, A y) { return y < x || y != y ? y : x; }
  BRAID_HD static A d_dx(A g, A x, A y) { return y < x ? A(0) : g; }
  BRAID_HD static A d_dy(A g, A x, A y) { return x <= y ? A(0) : g; }
};

template <class A>
struct Binary<BinaryOp::swiglu, A> {
  BRAID_HD static A forward(A x, A y) { return Unary<UnaryOp::silu, A>::forward(x, A(0), A(0)) * y; }
  BRAID_HD static A d_dx(A g, A x, A y) { return g * Unary<UnaryOp::silu, A>::backward(y, x, A(0), A(0)); }
  BRAID_HD static A d_dy(A g, A x, A) { return g * Unary<UnaryOp::silu, A>::forward(x, A(0), A(0)); }
};

namespace detail {
template <class Op, class F, size_t... i>
BRAID_HD void visit_each(Op op, F& f, std::index_sequence<i...>) {
  (void)((op == static_cast<Op>(i) && (f.template operator()<static_cast<Op>(i)>(), true)) || ...);
}
}  // namespace detail

// Comparisons with NaN are false, ne excepted.
template <class A>
BRAID_HD bool holds(CompareOp op, A x, A y) {
  return op == CompareOp::eq ? x == y : op == CompareOp::ne ? x != y : op == CompareOp::lt ? x < y : x <= y;
}

// The op with the values of `op` of scalar parameter a, and the fewest operations.
constexpr UnaryOp simplest(UnaryOp op, double a) {
  if (op != UnaryOp::pow) return op;
  return a == 2 ? UnaryOp::square : a == 3 ? UnaryOp::cube : op;
}

// visit(op, [&]<UnaryOp o>() { ... }) makes an op that is known at run time a template argument.
template <class F>
BRAID_HD void visit(UnaryOp op, F&& f) {
  detail::visit_each(op, f, std::make_index_sequence<static_cast<size_t>(UnaryOp::count)>());
}
template <class F>
BRAID_HD void visit(BinaryOp op, F&& f) {
  detail::visit_each(op, f, std::make_index_sequence<static_cast<size_t>(BinaryOp::count)>());
}

}  // namespace pointwise
}  // namespace braid
