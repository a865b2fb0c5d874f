// Functions of one or two numbers that the standard library has, element by element; without derivatives, which the ops
// compose. The functions that models train with are in pointwise_ops.h, with their derivatives.
//
// Inputs and outputs are contiguous, of one shape and one type. Arithmetic is f32 for f32, bf16 and f16, f64 for f64.
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid {

enum class MathOp : unsigned char {
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  asinh,
  acosh,
  atanh,
  erfc,
  exp2,
  expm1,
  log1p,
  log2,
  log10,
  floor,
  ceil,
  trunc,
  round,  // half to even
  count
};
enum class MathOp2 : unsigned char {
  atan2,      // the angle of (y, x), its arguments in that order
  hypot,      // sqrt(x^2 + y^2), without overflow
  pow,        // x^y
  fmod,       // x - y trunc(x / y), exact: the sign of x
  remainder,  // x - y floor(x / y): the sign of y
  copysign,   // |x| with the sign of y
  nextafter,  // the number of the type after x towards y
  count
};

struct MathKernels {
  Kernel<"math", void(MathOp op, In x, Out y)> unary;
  Kernel<"math_of_two", void(MathOp2 op, In x, In y, Out z)> binary;
};

namespace cpu {
extern constinit const MathKernels math_kernels;  // tensor/cpu/math_functions.cpp
}
namespace cuda {
extern constinit const MathKernels math_kernels;  // cuda/kernels/math_functions.cu
}

}  // namespace braid
