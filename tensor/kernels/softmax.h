// Softmax over the last axis: y_i = exp(x_i) / sum_j exp(x_j). All tensors contiguous.
//
// A row of only -inf, such as one whose keys are all masked, has softmax 0 and log_softmax -inf, its logarithm.
// Backward needs no rule for it: dx is 0 for softmax and dy for log_softmax. A row with +inf or NaN gives NaN.
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid {

struct SoftmaxKernels {
  Kernel<"softmax", void(In x, Out y)> forward;
  Kernel<"softmax_backward", void(In y, In dy, Out dx)> backward;
  Kernel<"log_softmax", void(In x, Out y)> log_forward;
  Kernel<"log_softmax_backward", void(In y, In dy, Out dx)> log_backward;
  // y (...) = log(sum(exp(x))) of each row of x (..., n), n > 0: -inf for a row of only -inf, +inf for one with +inf. A
  // device may be without it; the op is then composed.
  Kernel<"logsumexp", void(In x, Out y)> log_sum;
};

namespace cpu {
extern constinit const SoftmaxKernels softmax_kernels;  // tensor/cpu/softmax.cpp
}
namespace cuda {
extern constinit const SoftmaxKernels softmax_kernels;  // cuda/kernels/softmax.cu
}

}  // namespace braid
