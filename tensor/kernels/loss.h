// Loss: logits (R, V), whose rows may lie apart (strides (S, 1), S >= V, also as outputs); targets (R), i64 or i32,
// negative = not counted; loss, top, log_sum (R) in f32 (f64 for f64):
//   top = max_j x_j,   log_sum = log sum_j exp(x_j - top)
// Their sum, the logsumexp, would be rounded at the size of the logits: at 1e7 an f32 has no digit left for log_sum.
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid {

struct LossKernels {
  Kernel<"cross_entropy", void(In logits, In targets, Out loss, Out top, Out log_sum)> cross_entropy;
  // dlogits = scale ((1 + 2 z (top + log_sum)) softmax - onehot), 0 where not counted: the gradient of loss + z
  // logsumexp^2. dlogits may be the same tensor as logits. scale, in the type of loss: (1), or (R) with one factor per
  // row.
  Kernel<"cross_entropy_backward", void(In logits, In targets, In top, In log_sum, In scale, double z, Out dlogits)>
      cross_entropy_backward;
  // Both in one call: loss, top, log_sum, and logits replaced by their gradient of scale 1.
  Kernel<"cross_entropy_in_place", void(Out logits, In targets, double z, Out loss, Out top, Out log_sum)> in_place;

  // count (1), in the type of loss: of the targets that are counted, 1 where there is none.
  Kernel<"count_targets", void(In targets, Out count)> count_targets;

  // How linear_cross_entropy holds the logits of a chunk. bf16_logits: those of bf16 inputs in bf16, not in f32.
  bool bf16_logits = false;
  int64_t row_multiple = 1;  // their rows begin at multiples of this many elements
};

namespace cpu {
extern constinit const LossKernels loss_kernels;  // tensor/cpu/loss.cpp
}
namespace cuda {
extern constinit const LossKernels loss_kernels;  // cuda/kernels/loss.cu
}

}  // namespace braid
