// Vectors of 16 bytes, for every processor; without fused multiply-adds, as tensor/CMakeLists.txt says, but on ARM,
// where every processor has them.
#define BRAID_ROW_INVARIANT_ISA portable_isa
#define BRAID_ROW_INVARIANT_BYTES 16
#include "braid/tensor/cpu/row_invariant/block.h"

namespace braid::cpu::row_invariant {
extern constinit const Kernels portable = portable_isa::kernels_named("portable");
}  // namespace braid::cpu::row_invariant
