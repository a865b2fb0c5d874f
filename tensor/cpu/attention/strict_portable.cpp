// The attention kernels of StrictBits for every processor; tensor/CMakeLists.txt adds the instruction set's flags.
#define BRAID_ATTENTION_ISA strict_portable
#define BRAID_ATTENTION_BYTES 64
#define BRAID_ATTENTION_STRICT
#include "braid/tensor/cpu/attention/kernels.h"

namespace braid::cpu::attention {
extern constinit const Kernels<float> strict_portable_f32 = strict_portable::kernels_named<float>("portable");
extern constinit const Kernels<double> strict_portable_f64 = strict_portable::kernels_named<double>("portable");
}  // namespace braid::cpu::attention
