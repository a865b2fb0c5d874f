// The attention kernels with vectors of 16 bytes; tensor/CMakeLists.txt adds the instruction set's flags.
#define BRAID_ATTENTION_ISA portable
#define BRAID_ATTENTION_BYTES 16
#include "braid/tensor/cpu/attention/kernels.h"

namespace braid::cpu::attention {
extern constinit const Kernels<float> portable_f32 = portable::kernels_named<float>("portable");
extern constinit const Kernels<double> portable_f64 = portable::kernels_named<double>("portable");
}  // namespace braid::cpu::attention
