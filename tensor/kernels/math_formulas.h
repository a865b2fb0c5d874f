// The functions of math_functions.h, for every device. A is float or double.
#pragma once
#include <cmath>
#include <utility>

#include "braid/tensor/device_code.h"
#include "braid/tensor/kernels/math_functions.h"

namespace braid::math_functions {

template <MathOp op, class A>
BRAID_HD A value(A x) {
  if constexpr (op == MathOp::sin)
    return std::sin(x);
  else if constexpr (op == MathOp::cos)
    return std::cos(x);
  else if constexpr (op == MathOp::tan)
    return std::tan(x);
  else if constexpr (op == MathOp::asin)
    return std::asin(x);
  else if constexpr (op == MathOp::acos)
    return std::acos(x);
  else if constexpr (op == MathOp::atan)
    return std::atan(x);
  else if constexpr (op == MathOp::sinh)
    return std::sinh(x);
  else if constexpr (op == MathOp::cosh)
    return std::cosh(x);
  else if constexpr (op == MathOp::asinh)
    return std::asinh(x);
  else if constexpr (op == MathOp::acosh)
    return std::acosh(x);
  else if constexpr (op == MathOp::atanh)
    return std::atanh(x);
  else if constexpr (op == MathOp::erfc)
    return std::erfc(x);
  else if constexpr (op == MathOp::exp2)
    return std::exp2(x);
  else if constexpr (op == MathOp::expm1)
    return std::expm1(x);
  else if constexpr (op == MathOp::log1p)
    return std::log1p(x);
  else if constexpr (op == MathOp::log2)
    return std::log2(x);
  else if constexpr (op == MathOp::log10)
    return std::log10(x);
  else if constexpr (op == MathOp::floor)
    return std::floor(x);
  else if constexpr (op == MathOp::ceil)
    return std::ceil(x);
  else if constexpr (op == MathOp::trunc)
    return std::trunc(x);
  else
    return std::nearbyint(x);  // round
}

template <MathOp2 op, class A>
BRAID_HD A value(A x, A y) {
  if constexpr (op == MathOp2::atan2)
    return std::atan2(x, y);
  else if constexpr (op == MathOp2::hypot)
    return std::hypot(x, y);
  else if constexpr (op == MathOp2::pow)
    return std::pow(x, y);
  else if constexpr (op == MathOp2::fmod)
    return std::fmod(x, y);
  else if constexpr (op == MathOp2::remainder) {
    const A r = std::fmod(x, y);
    return r != A(0) ? ((r < A(0)) != (y < A(0)) ? r + y : r) : std::copysign(r, y);
  } else if constexpr (op == MathOp2::copysign)
    return std::copysign(x, y);
  else
    return std::nextafter(x, y);
}

// visit(op, [&]<MathOp o>() { ... }) makes an op that is known at run time a template argument.
template <class Op, class F, size_t... i>
void visit_each(Op op, F& f, std::index_sequence<i...>) {
  (void)((op == static_cast<Op>(i) && (f.template operator()<static_cast<Op>(i)>(), true)) || ...);
}
template <class Op, class F>
void visit(Op op, F&& f) {
  visit_each(op, f, std::make_index_sequence<static_cast<size_t>(Op::count)>());
}

}  // namespace braid::math_functions
