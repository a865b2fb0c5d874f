// Vectors of 32 bytes; tensor/CMakeLists.txt adds the instruction set's flags.
#define BRAID_ROW_INVARIANT_ISA avx2_isa
#define BRAID_ROW_INVARIANT_BYTES 32
#include "braid/tensor/cpu/row_invariant/block.h"

namespace braid::cpu::row_invariant {
extern constinit const Kernels avx2 = avx2_isa::kernels_named("avx2");
}  // namespace braid::cpu::row_invariant
