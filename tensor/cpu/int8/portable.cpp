#define BRAID_INT8_ISA portable_isa
#include "braid/tensor/cpu/int8/plain.h"

namespace braid::cpu::int8 {
extern constinit const Kernels portable{"portable", false, portable_isa::run};
}  // namespace braid::cpu::int8
