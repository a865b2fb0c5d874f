// Products with 8-bit and 4-bit weights, for inference. Without groups a weight of row o is scale[o] (values[o, i] -
// 128): u8, because VNNI multiplies unsigned by signed bytes. With them it is what tensor/group_weight.h says.
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid {

struct Int8Kernels {
  // weight (out, in), any float type -> values (out, in) u8 in 1..255, scale (out) f32:
  // scale[o] = max_i |weight[o, i]| / 127, values = 128 + round(weight / scale). weight is contiguous and finite.
  Kernel<"quantize_int8", void(In weight, Out values, Out scale)> quantize;
  // y (rows, out) f32 = x (rows, in) f32 W^T + bias; bias (out) f32 or an empty handle; all contiguous. x is rounded to
  // 16 bits per row, and the sums are those of integers: the same bits with every instruction set. A row of x that
  // contains NaN or Inf gives NaN.
  Kernel<"linear_int8", void(In x, In values, In scale, In bias, Out y)> linear;
  // weight as above -> values, scale of a GroupWeight. 8 bits: scale = max |w| / 127 of a group, q = round(w / scale),
  // halves away from zero. 4 bits: scale = m / -8 with m the first value of largest absolute value, q = floor(w / scale
  // + 1/2), at most 7. q is of the scale before it is rounded to f16.
  Kernel<"quantize_groups", void(In weight, int bits, Out values, Out scale)> quantize_groups;
  // The same as linear with GroupPanels, and with x rounded per group of 32: to 16 bits beside 8-bit weights, to 8 bits
  // beside 4-bit ones. The sum over groups is f32, in their order.
  Kernel<"linear_groups", void(In x, In values, In scale, In bias, Out y)> linear_groups;
};

namespace cpu {
extern constinit const Int8Kernels int8_kernels;  // tensor/cpu/int8/int8.cpp
}

}  // namespace braid
