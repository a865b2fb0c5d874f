// The attention kernels with vectors of 64 bytes and products of pairs of bf16; tensor/CMakeLists.txt adds the
// instruction set's flags.
#define BRAID_ATTENTION_ISA avx512_bf16
#define BRAID_ATTENTION_BYTES 64
#define BRAID_ATTENTION_PAIRS
#include "braid/tensor/cpu/attention/kernels.h"

namespace braid::cpu::attention {
extern constinit const Kernels<float> avx512_bf16_f32 = avx512_bf16::kernels_named<float>("avx512_bf16");
}  // namespace braid::cpu::attention
