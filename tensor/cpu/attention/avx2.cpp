// The attention kernels with vectors of 32 bytes; tensor/CMakeLists.txt adds the instruction set's flags.
#define BRAID_ATTENTION_ISA avx2
#define BRAID_ATTENTION_BYTES 32
#include "braid/tensor/cpu/attention/kernels.h"

namespace braid::cpu::attention {
extern constinit const Kernels<float> avx2_f32 = avx2::kernels_named<float>("avx2");
extern constinit const Kernels<double> avx2_f64 = avx2::kernels_named<double>("avx2");
}  // namespace braid::cpu::attention
