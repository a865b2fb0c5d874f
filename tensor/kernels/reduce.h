// Kernels that reduce axes, in a fixed order of summation.
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid {

enum class ReduceOp : unsigned char { sum, max, min, prod };  // prod: of integers only

struct ReduceKernels {
  // y has x's rank and size 1 along the reduced axes. Any strides on x; y may be f32 when x is bf16 or f16.
  // Sums and products of integers are i64, modulo 2^64.
  Kernel<"reduce", void(ReduceOp op, In x, Out y)> axes;
  // y = sum of x*z over the axes where y has size 1 and the common (broadcast) shape of x and z does not. x and z come
  // expanded to that shape, any strides.
  Kernel<"sum_product", void(In x, In z, Out y)> sum_product;
};

namespace cpu {
extern constinit const ReduceKernels reduce_kernels;  // tensor/cpu/reduce.cpp
}
namespace cuda {
extern constinit const ReduceKernels reduce_kernels;  // cuda/kernels/reduce.cu
}

}  // namespace braid
