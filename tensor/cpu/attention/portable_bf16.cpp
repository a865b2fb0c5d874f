// The attention kernels with vectors of 16 bytes and products of pairs of bf16 in plain arithmetic: what the
// instructions of avx512_bf16.cpp mean, up to the rounding of sums and to subnormal numbers, on any processor. For
// tests; f32 arithmetic is faster without such instructions.
#define BRAID_ATTENTION_ISA portable_bf16
#define BRAID_ATTENTION_BYTES 16
#define BRAID_ATTENTION_PAIRS
#include "braid/tensor/cpu/attention/kernels.h"

namespace braid::cpu::attention {
extern constinit const Kernels<float> portable_bf16_f32 = portable_bf16::kernels_named<float>("portable_bf16");
}  // namespace braid::cpu::attention
