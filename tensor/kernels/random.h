// Kernels that draw random numbers: element i depends on the key and on i alone (tensor/random.h), on every device.
#pragma once
#include "braid/tensor/kernels/kernel.h"
#include "braid/tensor/kernels/math_wide.h"
#include "braid/tensor/random.h"

namespace braid {

struct RandomKernels {
  // From low to below high, low included, in every type: rounding leads out of the range in none.
  Kernel<"uniform", void(double low, double high, RandomKey key, Out y)> uniform;
  Kernel<"normal", void(double mean, double deviation, RandomKey key, Out y)> normal;
  // y = x / (1-p) where the random number is at least p, otherwise 0; x: any strides.
  Kernel<"dropout", void(In x, double p, RandomKey key, Out y)> dropout;
};

// Two independent normal values from two uniform ones (Box and Muller): sqrt(-2 ln u) times cos and sin of 2 pi v.
template <class A>
struct NormalPair {
  A first, second;
};
template <class A>
BRAID_HD NormalPair<A> normal_numbers(float u, float v, A mean, A deviation) {
  const A radius = deviation * std::sqrt(A(-2) * math_wide::log(A(u))), angle = A(6.283185307179586477) * A(v);
  return {std::fma(radius, math_wide::cos(angle), mean), std::fma(radius, math_wide::sin(angle), mean)};
}

namespace cpu {
extern constinit const RandomKernels random_kernels;  // tensor/cpu/random.cpp
}
namespace cuda {
extern constinit const RandomKernels random_kernels;  // cuda/kernels/random.cu
}

}  // namespace braid
