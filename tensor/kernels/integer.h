// Arithmetic of integers (i64, i32, u8), element by element, the same on every device.
//
// Inputs and outputs are contiguous, of one shape and one type of width w bits. Results are taken modulo 2^w (two's
// complement), so that nothing overflows: the least i64 divided by -1 is itself, with remainder 0.
#pragma once
#include <type_traits>
#include <utility>

#include "braid/tensor/device_code.h"
#include "braid/tensor/kernels/kernel.h"

namespace braid {

enum class IntegerOp : unsigned char {
  add,
  sub,
  mul,
  floor_divide,  // towards -inf; the caller has checked that no divisor is 0
  remainder,     // x - y floor(x / y): the sign of y
  maximum,
  minimum,
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  left_shift,   // zeros enter; 0 for a count that is negative or at least w
  right_shift,  // the sign enters; only signs are left for such a count
  count
};

struct IntegerKernels {
  Kernel<"integer", void(IntegerOp op, In x, In y, Out z)> binary;
};

namespace integer {

template <class T>
BRAID_HD bool is_negative(T x) {
  if constexpr (std::is_signed_v<T>) return x < 0;
  return false;
}

template <IntegerOp op, class T>
BRAID_HD T value(T x, T y) {
  using U = std::make_unsigned_t<T>;
  using W = std::conditional_t<sizeof(T) < sizeof(unsigned), unsigned, U>;  // without promotion to a signed type
  constexpr U width = 8 * sizeof(T);
  const W a = static_cast<U>(x), b = static_cast<U>(y);
  if constexpr (op == IntegerOp::add) {
    return static_cast<T>(a + b);
  } else if constexpr (op == IntegerOp::sub) {
    return static_cast<T>(a - b);
  } else if constexpr (op == IntegerOp::mul) {
    return static_cast<T>(a * b);
  } else if constexpr (op == IntegerOp::maximum) {
    return x < y ? y : x;
  } else if constexpr (op == IntegerOp::minimum) {
    return y < x ? y : x;
  } else if constexpr (op == IntegerOp::bitwise_and) {
    return static_cast<T>(a & b);
  } else if constexpr (op == IntegerOp::bitwise_or) {
    return static_cast<T>(a | b);
  } else if constexpr (op == IntegerOp::bitwise_xor) {
    return static_cast<T>(a ^ b);
  } else if constexpr (op == IntegerOp::left_shift) {
    return b < width ? static_cast<T>(a << b) : T(0);
  } else if constexpr (op == IntegerOp::right_shift) {
    return b < width ? static_cast<T>(x >> b) : static_cast<T>(is_negative(x) ? -1 : 0);
  } else {
    if constexpr (std::is_signed_v<T>) {  // the quotient of the least number does not fit, and the hardware may trap
      if (y == -1) return op == IntegerOp::floor_divide ? static_cast<T>(W(0) - a) : T(0);
    }
    const T r = static_cast<T>(x % y);
    const bool below = r != 0 && is_negative(r) != is_negative(y);  // the quotient was rounded up to 0
    if constexpr (op == IntegerOp::floor_divide) return static_cast<T>(x / y - (below ? 1 : 0));
    return static_cast<T>(below ? r + y : r);
  }
}

// visit(op, [&]<IntegerOp o>() { ... }) makes an op that is known at run time a template argument.
template <class F>
void visit(IntegerOp op, F&& f) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (void)((static_cast<int>(op) == i && (f.template operator()<static_cast<IntegerOp>(i)>(), true)) || ...);
  }
  (std::make_integer_sequence<int, static_cast<int>(IntegerOp::count)>());
}

template <class F>
void visit_type(DType t, const char* op, F&& f) {
  if (t == DType::u8) return f.template operator()<uint8_t>();
  visit_index(t, op, f);
}

}  // namespace integer

namespace cpu {
extern constinit const IntegerKernels integer_kernels;  // tensor/cpu/integer.cpp
}
namespace cuda {
extern constinit const IntegerKernels integer_kernels;  // cuda/kernels/integer.cu
}

}  // namespace braid
