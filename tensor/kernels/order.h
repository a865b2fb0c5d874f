// Kernels that order elements by size.
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid {

struct OrderKernels {
  // Last axis of x (..., n), any strides; index (..., 1) or (...), i64. The first of equals; NaN counts as largest.
  Kernel<"argmax", void(In x, Out index)> argmax;
};

namespace cpu {
extern constinit const OrderKernels order_kernels;  // tensor/cpu/order.cpp
}
namespace cuda {
extern constinit const OrderKernels order_kernels;  // cuda/kernels/order.cu
}

}  // namespace braid
