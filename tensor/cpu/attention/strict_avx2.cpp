// The attention kernels of StrictBits for AVX2; tensor/CMakeLists.txt adds the instruction set's flags.
#define BRAID_ATTENTION_ISA strict_avx2
#define BRAID_ATTENTION_BYTES 64
#define BRAID_ATTENTION_STRICT
#include "braid/tensor/cpu/attention/kernels.h"

namespace braid::cpu::attention {
extern constinit const Kernels<float> strict_avx2_f32 = strict_avx2::kernels_named<float>("avx2");
extern constinit const Kernels<double> strict_avx2_f64 = strict_avx2::kernels_named<double>("avx2");
}  // namespace braid::cpu::attention
