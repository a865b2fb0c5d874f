// Softmax over the last axis: y_i = exp(x_i) / sum_j exp(x_j). All tensors contiguous.
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid {

struct SoftmaxKernels {
  Kernel<"softmax", void(In x, Out y)> forward;  // a row of only -inf gives zeros
  Kernel<"softmax_backward", void(In y, In dy, Out dx)> backward;
  Kernel<"log_softmax", void(In x, Out y)> log_forward;
  Kernel<"log_softmax_backward", void(In y, In dy, Out dx)> log_backward;
};

namespace cpu {
extern constinit const SoftmaxKernels softmax_kernels;  // tensor/cpu/softmax.cpp
}
namespace cuda {
extern constinit const SoftmaxKernels softmax_kernels;  // cuda/kernels/softmax.cu
}

}  // namespace braid
