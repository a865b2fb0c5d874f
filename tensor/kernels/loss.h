// Loss: logits (R, V); targets (R), i64 or i32, negative = not counted; loss, lse (R) in f32 (f64 for f64).
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid {

struct LossKernels {
  Kernel<"cross_entropy", void(In logits, In targets, Out loss, Out lse)> cross_entropy;
  // dlogits = scale (softmax - onehot), 0 where not counted; dlogits may be the same tensor as logits. scale, in the
  // type of loss: (1), or (R) with one factor per row.
  Kernel<"cross_entropy_backward", void(In logits, In targets, In lse, In scale, Out dlogits)> cross_entropy_backward;
};

namespace cpu {
extern constinit const LossKernels loss_kernels;  // tensor/cpu/loss.cpp
}
namespace cuda {
extern constinit const LossKernels loss_kernels;  // cuda/kernels/loss.cu
}

}  // namespace braid
