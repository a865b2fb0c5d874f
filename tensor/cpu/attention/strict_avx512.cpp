// The attention kernels of StrictBits for AVX-512; tensor/CMakeLists.txt adds the instruction set's flags.
#define BRAID_ATTENTION_ISA strict_avx512
#define BRAID_ATTENTION_BYTES 64
#define BRAID_ATTENTION_STRICT
#include "braid/tensor/cpu/attention/kernels.h"

namespace braid::cpu::attention {
extern constinit const Kernels<float> strict_avx512_f32 = strict_avx512::kernels_named<float>("avx512");
extern constinit const Kernels<double> strict_avx512_f64 = strict_avx512::kernels_named<double>("avx512");
}  // namespace braid::cpu::attention
