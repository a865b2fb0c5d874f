// Vectors of 64 bytes; tensor/CMakeLists.txt adds the instruction set's flags.
#define BRAID_ROW_INVARIANT_ISA avx512_isa
#define BRAID_ROW_INVARIANT_BYTES 64
#include "braid/tensor/cpu/row_invariant/block.h"

namespace braid::cpu::row_invariant {
extern constinit const Kernels avx512 = avx512_isa::kernels_named("avx512");
}  // namespace braid::cpu::row_invariant
