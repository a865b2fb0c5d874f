// Kernels that order elements by size.
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid {

struct OrderKernels {
  // Last axis of x (..., n) of any dtype, any strides; index (..., 1) or (...), i64. The first of equals, or the first
  // NaN.
  Kernel<"argmax", void(In x, Out index)> argmax;
  Kernel<"argmin", void(In x, Out index)> argmin;
  // The first k elements of the sorted last axis: x (..., n) of any dtype, values (..., k), indices (..., k) i64, all
  // contiguous. Equal elements are ordered by index; NaN counts as largest.
  Kernel<"sort", void(In x, bool descending, Out values, Out indices)> sort;
  // dx (..., n) = 0, except dx[..., indices[..., j]] = dvalues[..., j].
  Kernel<"sort_backward", void(In dvalues, In indices, Out dx)> sort_backward;
  // y[..., j] = x[..., indices[..., j]]: x (..., n) of any dtype, indices and y (..., k), all contiguous.
  Kernel<"take", void(In x, In indices, Out y)> take;
  // How many of the ascending elements of a row are below a value (right: not above it): sorted (n) or (..., n), values
  // and index (..., m), all contiguous; any dtype, index i64. NaN counts as largest.
  Kernel<"search", void(In sorted, In values, bool right, Out index)> search;
};

namespace cpu {
extern constinit const OrderKernels order_kernels;  // tensor/cpu/order.cpp
}
namespace cuda {
extern constinit const OrderKernels order_kernels;  // cuda/kernels/order.cu
}

}  // namespace braid
