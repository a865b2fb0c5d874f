// The factors of Compose from the products of their generator (nn/attention/composition.h).
#pragma once
#include <vector>

#include "braid/tensor/kernels/kernel.h"

namespace braid {

inline constexpr int kComposeBranches = 4;  // C at most: both sides of both stages

// P positions, G groups of M heads, C branches, rank R. All tensors contiguous.
//   w (G, C, P, 2R, M), an empty handle for R = 0;  gates (P, G, C, M);  y (P, G, C, 2R + 1, M):
//   y[s] = w[s] / sqrt(mean_m w[s]^2 + eps) for s < R,   y[s] = w[s] for R <= s < 2R,   y[2R] = tanh(gates)
struct ComposeFactorsKernels {
  Kernel<"compose_factors", void(In w, In gates, double eps, Out y)> forward;
  // dys: of each branch the gradients of y[:R] and y[R:2R], (P, G, R, M), and of y[2R], (P, G, M); an empty handle:
  // zeros. dw and dgates have the shapes of w and gates.
  Kernel<"compose_factors_backward",
         void(In w, In gates, double eps, const std::vector<Tensor>& dys, Out dw, Out dgates)>
      backward;
};

namespace cpu {
extern constinit const ComposeFactorsKernels compose_factors_kernels;  // tensor/cpu/compose_factors.cpp
}
namespace cuda {
extern constinit const ComposeFactorsKernels compose_factors_kernels;  // cuda/kernels/compose_factors.cu
}

}  // namespace braid
