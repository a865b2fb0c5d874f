// The functions of math_functions.h, for every device. A is float or double. On the CPU math_wide.h computes those of
// f32 that it has.
#pragma once
#include <cmath>
#include <type_traits>
#include <utility>

#include "braid/tensor/device_code.h"
#include "braid/tensor/kernels/math_functions.h"
#include "braid/tensor/kernels/math_wide.h"

namespace braid::math_functions {

#if defined(__CUDACC__)
template <class A>
inline constexpr bool kWide = false;
#else
template <class A>
inline constexpr bool kWide = std::is_same_v<A, float>;
#endif

// Functions that math_wide.h has for some arguments only, those in_range(); the C library has them elsewhere.
template <MathOp op, class A>
inline constexpr bool kHasRange = kWide<A> && (op == MathOp::sin || op == MathOp::cos || op == MathOp::tan);
template <MathOp2 op, class A>
inline constexpr bool kHasRange2 = kWide<A> && (op == MathOp2::fmod || op == MathOp2::remainder);

#if !defined(__CUDACC__)
inline bool in_range(float x) { return std::fabs(x) <= math_wide::kLargestAngle; }
inline bool in_range(float x, float y) { return math_wide::quotient_is_exact(x, y); }
#endif

// The value for arguments in range. Loops over it become vector loops where the function has one.
template <MathOp op, class A>
BRAID_HD A unchecked(A x) {
  if constexpr (op == MathOp::sin)
    return math_wide::sin(x);
  else if constexpr (op == MathOp::cos)
    return math_wide::cos(x);
  else if constexpr (op == MathOp::tan)
    return math_wide::tan(x);
  else if constexpr (op == MathOp::asin)
    return math_wide::asin(x);
  else if constexpr (op == MathOp::acos)
    return math_wide::acos(x);
  else if constexpr (op == MathOp::atan)
    return math_wide::atan(x);
  else if constexpr (op == MathOp::sinh)
    return math_wide::sinh(x);
  else if constexpr (op == MathOp::cosh)
    return math_wide::cosh(x);
  else if constexpr (op == MathOp::asinh)
    return math_wide::asinh(x);
  else if constexpr (op == MathOp::acosh)
    return math_wide::acosh(x);
  else if constexpr (op == MathOp::atanh)
    return math_wide::atanh(x);
  else if constexpr (op == MathOp::erfc)
    return std::erfc(x);
  else if constexpr (op == MathOp::exp2)
    return math_wide::exp2(x);
  else if constexpr (op == MathOp::expm1)
    return math_wide::expm1(x);
  else if constexpr (op == MathOp::log1p)
    return math_wide::log1p(x);
  else if constexpr (op == MathOp::log2)
    return math_wide::log2(x);
  else if constexpr (op == MathOp::log10)
    return math_wide::log10(x);
  else if constexpr (op == MathOp::floor)
    return std::floor(x);
  else if constexpr (op == MathOp::ceil)
    return std::ceil(x);
  else if constexpr (op == MathOp::trunc)
    return std::trunc(x);
  else
    return std::nearbyint(x);  // round
}

// x - y floor(x / y), from r = fmod(x, y).
template <class A>
BRAID_HD A remainder_of(A r, A y) {
  const A towards_y = (r < A(0)) != (y < A(0)) ? r + y : r;
  return r != A(0) ? towards_y : std::copysign(r, y);
}

template <MathOp2 op, class A>
BRAID_HD A unchecked(A x, A y) {
  if constexpr (op == MathOp2::atan2)
    return math_wide::atan2(x, y);
  else if constexpr (op == MathOp2::hypot)
    return math_wide::hypot(x, y);
  else if constexpr (op == MathOp2::pow)
    return math_wide::pow(x, y);
  else if constexpr (op == MathOp2::fmod)
    return math_wide::fmod(x, y);
  else if constexpr (op == MathOp2::remainder)
    return remainder_of(math_wide::fmod(x, y), y);
  else if constexpr (op == MathOp2::copysign)
    return std::copysign(x, y);
  else
    return std::nextafter(x, y);
}

// The value for any argument.
template <MathOp op, class A>
BRAID_HD A value(A x) {
  if constexpr (kHasRange<op, A>) {
    if (!in_range(x)) return op == MathOp::sin ? std::sin(x) : op == MathOp::cos ? std::cos(x) : std::tan(x);
  }
  return unchecked<op>(x);
}
template <MathOp2 op, class A>
BRAID_HD A value(A x, A y) {
  if constexpr (kHasRange2<op, A>) {
    if (!in_range(x, y)) return op == MathOp2::fmod ? std::fmod(x, y) : remainder_of(std::fmod(x, y), y);
  }
  return unchecked<op>(x, y);
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
