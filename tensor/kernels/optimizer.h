// Kernels over lists of tensors: optimizer updates, in place, and the norm for clipping. All tensors contiguous.
//
// The formulas behind UpdateRule are listed in update_rules.h, which few files include.
#pragma once
#include <array>
#include <vector>

#include "braid/tensor/kernels/kernel.h"

namespace braid {

enum class UpdateRule : unsigned char;

// The values that differ from one update to the next: a tensor `scalars`, f64 (4), holds them in this order, on the
// parameters' device, so that a captured update can be replayed with other values.
template <class A>
struct StepScalars {
  A lr, grad_scale;             // the gradient is multiplied by grad_scale first (clipping)
  A first_scale, second_scale;  // 1 / (1 - beta^t) of AdamW's moments, t = 1 for the first update
};

// An update of a list of parameters.
struct UpdateStep {
  struct Item {  // all tensors have the same number of elements
    Tensor parameter, gradient;
    std::vector<Tensor> state;  // as many as the rule has; f32 (f64 for f64)
    double weight_decay;
    // A copy of an f32 parameter in bf16 or f16, written with the new parameter, or an empty handle. With a copy the
    // gradient may have its type instead of the parameter's.
    Tensor copy = {};
  };
  std::vector<Item> items;          // their types may differ
  std::array<double, 4> constants;  // of the rule: the same in every update
  Tensor scalars;
};

struct OptimizerKernels {
  Kernel<"optimizer_update", void(UpdateRule rule, const UpdateStep& step)> update;
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
