// Kernels that order elements by size.
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid {

struct OrderKernels {
  // Last axis of x (..., n), any strides; index (..., 1) or (...), i64. The first of equals; NaN counts as largest.
  Kernel<"argmax", void(In x, Out index)> argmax;
  // The first k elements of the sorted last axis: x (..., n), values (..., k), indices (..., k) i64, all contiguous.
  // Equal elements are ordered by index; NaN counts as largest.
  Kernel<"sort", void(In x, bool descending, Out values, Out indices)> sort;
  // dx (..., n) = 0, except dx[..., indices[..., j]] = dvalues[..., j].
  Kernel<"sort_backward", void(In dvalues, In indices, Out dx)> sort_backward;
};

namespace cpu {
extern constinit const OrderKernels order_kernels;  // tensor/cpu/order.cpp
}
namespace cuda {
extern constinit const OrderKernels order_kernels;  // cuda/kernels/order.cu
}

}  // namespace braid
