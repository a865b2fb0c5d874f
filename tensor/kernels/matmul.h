// Matrix products.
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid {

struct MatmulKernels {
  // y (..., M, N) = x (..., M, K) z (..., K, N), batch axes already expanded to y's, any strides; y contiguous.
  // accumulate: y += instead of y =. y may be f32 when x and z are bf16 or f16.
  Kernel<"matmul", void(In x, In z, bool accumulate, Out y)> product;
  // y (..., T, out) = x (..., T, in) weight^T + bias: any strides on x and weight (out, in); bias (out) is contiguous
  // or an empty handle. In 16 bits y is rounded once, with the bias in it.
  Kernel<"linear", void(In x, In weight, In bias, Out y)> linear;
};

namespace cpu {
extern constinit const MatmulKernels matmul_kernels;  // tensor/cpu/matmul.cpp
}
namespace cuda {
extern constinit const MatmulKernels matmul_kernels;  // cuda/matmul/matmul.cpp
}

}  // namespace braid
