// The attention kernels with vectors of 64 bytes and products of tiles of bf16 (AMX); tensor/CMakeLists.txt adds the
// instruction set's flags.
#define BRAID_ATTENTION_ISA amx
#define BRAID_ATTENTION_BYTES 64
#define BRAID_ATTENTION_PAIRS
#define BRAID_ATTENTION_TILES
#include "braid/tensor/cpu/attention/kernels.h"

namespace braid::cpu::attention {
extern constinit const Kernels<float> amx_f32 = amx::kernels_named<float>("amx");
}  // namespace braid::cpu::attention
