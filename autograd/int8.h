// Linear maps with 8-bit and 4-bit weights, for inference on the CPU: a step that decodes one token reads a quarter or
// an eighth of the bytes of f32 weights.
//
//   W[o, i] ~ s[o] q[o, i],   s[o] = max_i |W[o, i]| / 127,   q = round(W / s) in [-127, 127]:   |W - s q| <= s / 2
//
// The activations keep 16 bits (a row of x as multiples of its largest value / 32512), so the error is that of the
// weights. The products are sums of integers: bit-identical with every instruction set.
#pragma once
#include "braid/tensor/group_weight.h"

namespace braid {

struct Int8Weight {
  Tensor values;  // (out, in) u8: 128 + q
  Tensor scale;   // (out) f32: s
};

// weight (out, in) of any float type, finite. No derivative.
Int8Weight quantize_int8(const Tensor& weight);
Tensor dequantize_int8(const Int8Weight& weight);  // s q, (out, in) f32
// y = x (s q)^T + bias: linear(x, dequantize_int8(weight), bias) up to the rounding of x. x (..., in) f32, bias (out)
// f32 or an empty handle. A row of x with NaN or Inf gives NaN. No derivative: throws when x or bias requires one.
Tensor linear_int8(const Tensor& x, const Int8Weight& weight, const Tensor& bias = {});

// The same with a scale of 16 bits for each group of 32 weights of a row, of which the last may be smaller, in 8 bits
// (Q8_0 of GGUF files) or 4 (Q4_0):
//
//   8 bits: s = max |W| / 127,  |q| <= 127;   4 bits: s = m / -8, m the weight of largest absolute value, -8 <= q <= 7
//
// The activations have a scale for each group too: the largest of a group is 32512 beside 8 bits, 127 beside 4.
// Integers sum the products of a group, f32 the groups in their order: bit-identical as well. x may have any size of
// the weight's number of groups, ceil(in / 32): the elements that it lacks count as 0.
GroupWeight quantize_groups(const Tensor& weight, int bits);
Tensor dequantize_groups(const GroupWeight& weight, int64_t in);  // (out, in) f32
Tensor linear_groups(const Tensor& x, const GroupPanels& weight, const Tensor& bias = {});

}  // namespace braid
