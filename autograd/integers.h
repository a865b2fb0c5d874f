// Integers, bits, and numbers beside tensors.
//
// The types of results, one rule for all ops. Two tensors have one type, and nothing is promoted: an error names
// cast(). A number beside a tensor takes the tensor's type, and must be a number of that type: arange(3) * 2 is i64,
// arange(3) * 2.5 an error. Comparisons and logic give masks, u8. Of integers (i64, i32, u8) there are add, sub, mul,
// neg, abs, square, maximum, minimum, clamp, floor_divide, remainder and what follows here; div, mean and functions of
// real numbers need a floating-point tensor. Integers wrap around (two's complement). They have no gradients.
#pragma once
#include "braid/autograd/math.h"

namespace braid {

// Bits of two integer tensors of one type, broadcast. &, | and ^ of masks are the logical functions of math.h.
Tensor bitwise_and(const Tensor& x, const Tensor& y);
Tensor bitwise_or(const Tensor& x, const Tensor& y);
Tensor bitwise_xor(const Tensor& x, const Tensor& y);
Tensor bitwise_invert(const Tensor& x);  // ~x; of a mask that is 255 or 254: logical_not(x) is the other mask
// A count that is negative or at least the width shifts all bits out.
Tensor bitwise_left_shift(const Tensor& x, const Tensor& count);
Tensor bitwise_right_shift(const Tensor& x, const Tensor& count);  // the sign enters

// With a number, of any type that holds it.
Tensor maximum(const Tensor& x, double y);
Tensor minimum(const Tensor& x, double y);
Tensor floor_divide(const Tensor& x, double y);  // of integers: y is not 0
Tensor remainder(const Tensor& x, double y);
inline Tensor operator%(const Tensor& x, double y) { return remainder(x, y); }
Tensor where(const Tensor& mask, const Tensor& x, double y);
Tensor where(const Tensor& mask, double x, const Tensor& y);

}  // namespace braid
