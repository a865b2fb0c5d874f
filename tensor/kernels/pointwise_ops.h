// The pointwise functions: each with its derivative, once, for every device and for the backward pass.
//
// To add a function: its enumerator in UnaryOp or BinaryOp, before `count`, and its Unary or Binary, which holds
// forward and derivatives in the accumulation type A (float or double). Call braid::math in it; of std:: only sqrt,
// fabs and the like, which the compiler vectorises.
#pragma once
#include <utility>

#include "braid/tensor/kernels/math.h"
#include "braid/tensor/kernels/pointwise.h"

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
  pow,    // x^a
  clamp,  // min(max(x, a), b)
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
inline constexpr double kSqrt2OverPi = 0.79788456080286535588, kGeluCubic = 0.044715;

template <class A>
BRAID_HD A sigmoid(A x) {
  return A(1) / (A(1) + math::exp(-x));
}

// forward(x, a, b), and derivative(x, a, b) = d forward / dx; a and b are the scalar parameters of the op.
template <UnaryOp op, class A>
struct Unary;

template <class A>
struct Unary<UnaryOp::affine, A> {  // a x + b
  BRAID_HD static A forward(A x, A a, A b) { return a * x + b; }
  BRAID_HD static A derivative(A, A a, A) { return a; }
};

template <class A>
struct Unary<UnaryOp::exp, A> {
  BRAID_HD static A forward(A x, A, A) { return math::exp(x); }
  BRAID_HD static A derivative(A x, A, A) { return math::exp(x); }
};

template <class A>
struct Unary<UnaryOp::log, A> {
  BRAID_HD static A forward(A x, A, A) { return math::log(x); }
  BRAID_HD static A derivative(A x, A, A) { return A(1) / x; }
};

template <class A>
struct Unary<UnaryOp::sqrt, A> {
  BRAID_HD static A forward(A x, A, A) { return std::sqrt(x); }
  BRAID_HD static A derivative(A x, A, A) { return A(0.5) / std::sqrt(x); }
};

template <class A>
struct Unary<UnaryOp::rsqrt, A> {  // 1 / sqrt(x)
  BRAID_HD static A forward(A x, A, A) { return A(1) / std::sqrt(x); }
  BRAID_HD static A derivative(A x, A, A) { return A(-0.5) / (x * std::sqrt(x)); }
};

template <class A>
struct Unary<UnaryOp::square, A> {
  BRAID_HD static A forward(A x, A, A) { return x * x; }
  BRAID_HD static A derivative(A x, A, A) { return A(2) * x; }
};

template <class A>
struct Unary<UnaryOp::reciprocal, A> {
  BRAID_HD static A forward(A x, A, A) { return A(1) / x; }
  BRAID_HD static A derivative(A x, A, A) { return A(-1) / (x * x); }
};

template <class A>
struct Unary<UnaryOp::abs, A> {
  BRAID_HD static A forward(A x, A, A) { return std::fabs(x); }
  BRAID_HD static A derivative(A x, A, A) { return x > A(0) ? A(1) : x < A(0) ? A(-1) : A(0); }
};

template <class A>
struct Unary<UnaryOp::tanh, A> {
  BRAID_HD static A forward(A x, A, A) { return math::tanh(x); }
  BRAID_HD static A derivative(A x, A, A) {
    const A t = math::tanh(x);
    return A(1) - t * t;
  }
};

template <class A>
struct Unary<UnaryOp::sigmoid, A> {
  BRAID_HD static A forward(A x, A, A) { return pointwise::sigmoid(x); }
  BRAID_HD static A derivative(A x, A, A) {
    const A s = pointwise::sigmoid(x);
    return s * (A(1) - s);
  }
};

template <class A>
struct Unary<UnaryOp::silu, A> {
  BRAID_HD static A forward(A x, A, A) { return x * sigmoid(x); }
  BRAID_HD static A derivative(A x, A, A) {
    const A s = sigmoid(x);
    return s * (A(1) + x * (A(1) - s));
  }
};

template <class A>
struct Unary<UnaryOp::gelu_erf, A> {  // derivative: Phi(x) + x phi(x)
  BRAID_HD static A forward(A x, A, A) { return x * A(0.5) * (A(1) + math::erf(x * A(kSqrtHalf))); }
  BRAID_HD static A derivative(A x, A, A) {
    return A(0.5) * (A(1) + math::erf(x * A(kSqrtHalf))) + x * A(kInvSqrt2Pi) * math::exp(A(-0.5) * x * x);
  }
};

template <class A>
struct Unary<UnaryOp::gelu_tanh, A> {
  BRAID_HD static A forward(A x, A, A) {
    return A(0.5) * x * (A(1) + math::tanh(A(kSqrt2OverPi) * (x + A(kGeluCubic) * x * x * x)));
  }
  BRAID_HD static A derivative(A value, A, A) {
    // Beyond 10 tanh is 1 in every digit; x^2 and x^3 would overflow.
    const A x = value < A(-10) ? A(-10) : value > A(10) ? A(10) : value;
    const A u = A(kSqrt2OverPi) * (x + A(kGeluCubic) * x * x * x), t = math::tanh(u);
    return A(0.5) * (A(1) + t) + A(0.5) * x * (A(1) - t * t) * A(kSqrt2OverPi) * (A(1) + A(3 * kGeluCubic) * x * x);
  }
};

template <class A>
struct Unary<UnaryOp::relu, A> {  // a NaN stays one
  BRAID_HD static A forward(A x, A, A) { return x > A(0) || x != x ? x : A(0); }
  BRAID_HD static A derivative(A x, A, A) { return x > A(0) ? A(1) : A(0); }
};

template <class A>
struct Unary<UnaryOp::pow, A> {
  BRAID_HD static A forward(A x, A a, A) { return std::pow(x, a); }
  BRAID_HD static A derivative(A x, A a, A) { return a == A(0) ? A(0) : a * std::pow(x, a - A(1)); }
};

template <class A>
struct Unary<UnaryOp::clamp, A> {
  BRAID_HD static A forward(A x, A a, A b) { return x < a ? a : x > b ? b : x; }
  BRAID_HD static A derivative(A x, A a, A b) { return x < a || x > b ? A(0) : A(1); }
};

// forward(x, y), and its derivatives d_dx and d_dy.
template <BinaryOp op, class A>
struct Binary;

template <class A>
struct Binary<BinaryOp::add, A> {
  BRAID_HD static A forward(A x, A y) { return x + y; }
  BRAID_HD static A d_dx(A, A) { return A(1); }
  BRAID_HD static A d_dy(A, A) { return A(1); }
};

template <class A>
struct Binary<BinaryOp::sub, A> {
  BRAID_HD static A forward(A x, A y) { return x - y; }
  BRAID_HD static A d_dx(A, A) { return A(1); }
  BRAID_HD static A d_dy(A, A) { return A(-1); }
};

template <class A>
struct Binary<BinaryOp::mul, A> {
  BRAID_HD static A forward(A x, A y) { return x * y; }
  BRAID_HD static A d_dx(A, A y) { return y; }
  BRAID_HD static A d_dy(A x, A) { return x; }
};

template <class A>
struct Binary<BinaryOp::div, A> {
  BRAID_HD static A forward(A x, A y) { return x / y; }
  BRAID_HD static A d_dx(A, A y) { return A(1) / y; }
  BRAID_HD static A d_dy(A x, A y) { return -(x / y) / y; }  // y y would overflow
};

template <class A>
struct Binary<BinaryOp::maximum, A> {  // ties go to x
  BRAID_HD static A forward(A x, A y) { return y > x || y != y ? y : x; }
  BRAID_HD static A d_dx(A x, A y) { return y > x ? A(0) : A(1); }
  BRAID_HD static A d_dy(A x, A y) { return y > x ? A(1) : A(0); }
};

template <class A>
struct Binary<BinaryOp::minimum, A> {  // ties go to x
  BRAID_HD static A forward(A x, A y) { return y < x || y != y ? y : x; }
  BRAID_HD static A d_dx(A x, A y) { return y < x ? A(0) : A(1); }
  BRAID_HD static A d_dy(A x, A y) { return y < x ? A(1) : A(0); }
};

template <class A>
struct Binary<BinaryOp::swiglu, A> {
  BRAID_HD static A forward(A x, A y) { return x * sigmoid(x) * y; }
  BRAID_HD static A d_dx(A x, A y) { return Unary<UnaryOp::silu, A>::derivative(x, A(0), A(0)) * y; }
  BRAID_HD static A d_dy(A x, A) { return x * sigmoid(x); }
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
