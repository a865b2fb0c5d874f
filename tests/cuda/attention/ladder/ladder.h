// A ladder to the kernels of cuda/attention: the same attention four times, each rung closer to the hardware. Forward
// only, and written to be read: README.md says what each rung gains, and where the climb continues.
#pragma once
#include "braid/tensor/kernels/attention.h"

namespace braid::ladder {

// DCMHA of inputs on the GPU: all of them contiguous, as many key/value heads as heads, one group (G = 1), every member
// of both mixings given. y (B, T, N, d) has the type of the inputs.
void naive(const DcmhaInputs& x, Tensor& y);         // f32
void tiled(const DcmhaInputs& x, Tensor& y);         // f32, 16 heads
void tensor_cores(const DcmhaInputs& x, Tensor& y);  // bf16, 16 heads, ranks of 1 or 2
void fused(const DcmhaInputs& x, Tensor& y);         // the same, d at most 64 and a multiple of 8

}  // namespace braid::ladder
