// Kernels that draw random numbers: element i depends on the key and on i alone (tensor/random.h), on every device.
#pragma once
#include "braid/tensor/kernels/kernel.h"
#include "braid/tensor/random.h"

namespace braid {

struct RandomKernels {
  // From low to below high, low included, in every type: rounding leads out of the range in none.
  Kernel<"uniform", void(double low, double high, RandomKey key, Out y)> uniform;
  Kernel<"normal", void(double mean, double deviation, RandomKey key, Out y)> normal;
  // y = x / (1-p) where the random number is at least p, otherwise 0; x: any strides.
  Kernel<"dropout", void(In x, double p, RandomKey key, Out y)> dropout;
};

namespace cpu {
extern constinit const RandomKernels random_kernels;  // tensor/cpu/random.cpp
}
namespace cuda {
extern constinit const RandomKernels random_kernels;  // cuda/kernels/random.cu
}

}  // namespace braid
