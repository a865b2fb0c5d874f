// Kernels that copy, convert and fill.
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid {

struct CopyKernels {
  Kernel<"copy", void(In x, Out y)> strided;  // same shape, any strides and any dtypes on both sides: this is the cast
  Kernel<"fill", void(double value, Out y)> fill;  // any strides, any dtype
};

namespace cpu {
extern constinit const CopyKernels copy_kernels;  // tensor/cpu/copy.cpp
}
namespace cuda {
extern constinit const CopyKernels copy_kernels;  // cuda/kernels/copy.cu
}

}  // namespace braid
