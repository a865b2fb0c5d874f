// Kernels whose element i depends on the elements 0 to i of the last axis.
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid {

struct ScanKernels {
  // x, y (..., n), contiguous: y[i] = x[0] + ... + x[i]; reverse: y[i] = x[i] + ... + x[n-1]. Summed in f64, in a
  // fixed order. Sums of integers are i64, modulo 2^64.
  Kernel<"cumsum", void(In x, bool reverse, Out y)> cumsum;
  // The largest (smallest) of x[0] to x[i] and the index of its first occurrence, i64; all (..., n), contiguous, of any
  // dtype. From the first NaN on, that NaN.
  Kernel<"cummax", void(In x, bool smallest, Out values, Out indices)> cummax;
  // y[i] = a[i] y[i-1] + b[i], y[-1] = 0; reverse: y[i] = a[i] y[i+1] + b[i], y[n] = 0. All (..., n), contiguous,
  // floats.
  Kernel<"recurrence", void(In a, In b, bool reverse, Out y)> recurrence;
};

namespace cpu {
extern constinit const ScanKernels scan_kernels;  // tensor/cpu/scan.cpp
}
namespace cuda {
extern constinit const ScanKernels scan_kernels;  // cuda/kernels/scan.cu
}

}  // namespace braid
