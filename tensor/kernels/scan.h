// Kernels whose element i depends on the elements 0 to i of the last axis.
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid {

struct ScanKernels {
  // x, y (..., n), contiguous: y[i] = x[0] + ... + x[i]; reverse: y[i] = x[i] + ... + x[n-1]. Summed in a fixed order.
  Kernel<"cumsum", void(In x, bool reverse, Out y)> cumsum;
};

namespace cpu {
extern constinit const ScanKernels scan_kernels;  // tensor/cpu/scan.cpp
}
namespace cuda {
extern constinit const ScanKernels scan_kernels;  // cuda/kernels/scan.cu
}

}  // namespace braid
