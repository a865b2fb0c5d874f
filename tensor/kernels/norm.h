// Normalisation of the last axis (D). All tensors contiguous.
//
// weight, bias (D) may be empty handles. rstd, mean (rows) are f32 (f64 for f64). With a residual, sum = x + residual,
// rounded to its type, is written and takes the place of x; otherwise both are empty handles. Backward, x is the tensor
// that was normalised, and dx = the norm's derivative + dsum, the gradient that reached x from elsewhere (may be
// empty).
#pragma once
#include "braid/tensor/kernels/kernel.h"

namespace braid {

struct NormKernels {
  Kernel<"rms_norm", void(In x, In residual, In weight, double eps, Out sum, Out y, Out rstd)> rms_forward;
  Kernel<"rms_norm_backward", void(In x, In weight, In rstd, In dy, In dsum, Out dx, Out dweight)> rms_backward;
  Kernel<"layer_norm", void(In x, In residual, In weight, In bias, double eps, Out sum, Out y, Out mean, Out rstd)>
      layer_forward;
  Kernel<"layer_norm_backward", void(In x, In weight, In mean, In rstd, In dy, In dsum, Out dx, Out dweight, Out dbias)>
      layer_backward;
};

namespace cpu {
extern constinit const NormKernels norm_kernels;  // tensor/cpu/norm.cpp
}
namespace cuda {
extern constinit const NormKernels norm_kernels;  // cuda/kernels/norm.cu
}

}  // namespace braid
