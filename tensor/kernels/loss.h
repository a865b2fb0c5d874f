// Loss: logits (R, V); targets (R), i64 or i32, negative = not counted; loss, top, log_sum (R) in f32 (f64 for f64):
//   top = max_j x_j,   log_sum = log sum_j exp(x_j - top)
// Their sum, the logsumexp, would be rounded at the size of the logits: at 1e7 an f32 has no digit left for log_sum.
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid {

struct LossKernels {
  Kernel<"cross_entropy", void(In logits, In targets, Out loss, Out top, Out log_sum)> cross_entropy;
  // dlogits = scale (softmax - onehot), 0 where not counted; dlogits may be the same tensor as logits. scale, in the
  // type of loss: (1), or (R) with one factor per row.
  Kernel<"cross_entropy_backward", void(In logits, In targets, In top, In log_sum, In scale, Out dlogits)>
      cross_entropy_backward;
};

namespace cpu {
extern constinit const LossKernels loss_kernels;  // tensor/cpu/loss.cpp
}
namespace cuda {
extern constinit const LossKernels loss_kernels;  // cuda/kernels/loss.cu
}

}  // namespace braid
