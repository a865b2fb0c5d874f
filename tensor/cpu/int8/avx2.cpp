#define BRAID_INT8_ISA avx2_isa
#include "braid/tensor/cpu/int8/plain.h"

namespace braid::cpu::int8 {
extern constinit const Kernels avx2{"avx2", false, avx2_isa::run};
}  // namespace braid::cpu::int8
