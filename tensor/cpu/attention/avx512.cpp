// The attention kernels with vectors of 64 bytes; tensor/CMakeLists.txt adds the instruction set's flags.
#define BRAID_ATTENTION_ISA avx512
#define BRAID_ATTENTION_BYTES 64
#include "braid/tensor/cpu/attention/kernels.h"

namespace braid::cpu::attention {
extern constinit const Kernels<float> avx512_f32 = avx512::kernels_named<float>("avx512");
extern constinit const Kernels<double> avx512_f64 = avx512::kernels_named<double>("avx512");
}  // namespace braid::cpu::attention
