// Kernels over lists of tensors: optimizer updates, in place, and the norm for clipping. All tensors contiguous.
#pragma once
#include <vector>

#include "braid/tensor/kernels/kernel.h"

namespace braid {

// The values that differ from one update to the next: a tensor `scalars`, f64 (4), holds them in this order, on the
// parameters' device, so that a captured update can be replayed with other values.
struct StepScalars {
  double lr, grad_scale;             // the gradient is multiplied by grad_scale first (clipping)
  double first_scale, second_scale;  // 1 / (1 - beta^t) of AdamW's moments, t = 1 for the first update
};

struct AdamWStep {  // the formula: nn/optim/adamw.h
  struct Item {     // all the same number of elements; the moments f32 (f64 for f64)
    Tensor parameter, gradient, first, second;
    double weight_decay;
  };
  std::vector<Item> items;  // their types may differ
  double beta1, beta2, eps;
  bool coupled_decay;  // Adam's L2: decay is added to the gradient instead of the update
  Tensor scalars;
};

struct SgdStep {
  struct Item {
    Tensor parameter, gradient, momentum;  // momentum may be empty; it starts as zeros
    double weight_decay;
  };
  std::vector<Item> items;
  double momentum_factor;
  Tensor scalars;
};

struct OptimizerKernels {
  Kernel<"adamw", void(const AdamWStep&)> adamw;
  Kernel<"sgd", void(const SgdStep&)> sgd;
  // y (n), f64: y[i] = sum of x[i]^2, accumulated in f64. x[i] of any float types, or an empty handle, for 0.
  Kernel<"sum_of_squares", void(const std::vector<Tensor>& x, Out y)> sum_of_squares;
};

namespace cpu {
extern constinit const OptimizerKernels optimizer_kernels;  // tensor/cpu/optimizer.cpp
}
namespace cuda {
extern constinit const OptimizerKernels optimizer_kernels;  // cuda/kernels/optimizer.cu
}

}  // namespace braid
