// Rotary position embedding.
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid {

struct RopeKernels {
  // x, y (B, T, N, d), tables (B or 1, T, rotary/2) in f32 (f64 for f64), all contiguous; inverse rotates by the
  // negative angle.
  Kernel<"rope", void(In x, In cosine, In sine, bool inverse, Out y)> rotate;
};

namespace cpu {
extern constinit const RopeKernels rope_kernels;  // tensor/cpu/rope.cpp
}
namespace cuda {
extern constinit const RopeKernels rope_kernels;  // cuda/kernels/rope.cu
}

}  // namespace braid
