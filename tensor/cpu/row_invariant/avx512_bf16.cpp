// Vectors of 64 bytes, and products of pairs of bf16; tensor/CMakeLists.txt adds the instruction set's flags.
#define BRAID_ROW_INVARIANT_ISA avx512_bf16_isa
#define BRAID_ROW_INVARIANT_BYTES 64
#define BRAID_ROW_INVARIANT_PAIRS
#include "braid/tensor/cpu/row_invariant/block.h"

namespace braid::cpu::row_invariant {
extern constinit const Kernels avx512_bf16 = avx512_bf16_isa::kernels_named("avx512_bf16");
}  // namespace braid::cpu::row_invariant
