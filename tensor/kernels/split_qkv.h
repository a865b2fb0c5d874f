// Queries, keys and values from the one product that makes them, normalised and rotated.
#pragma once
#include "braid/tensor/attention_operands.h"
#include "braid/tensor/kernels/kernel.h"

namespace braid {

struct SplitQkvKernels {
  // x (B, T, (N + 2 Nkv) d), and the vectors and tables of `how`, contiguous. q (B, T, N, d) and k, v (B, T, Nkv, d) of
  // any strides, their last axis contiguous; on the CPU v may be an empty handle: not written. What is normalised is
  // rounded before it is rotated, as the ops of the composed form do.
  Kernel<"split_qkv", void(In x, const QkvSplit& how, Out q, Out k, Out v)> forward;
  // dq, dk, dv of any strides, the last axis contiguous; an empty handle: zeros. dx is contiguous and completely
  // written. dq_norm, dk_norm (d): both, or two empty handles. x: an empty handle where there are no norms.
  Kernel<"split_qkv_backward", void(In x, const QkvSplit& how, In dq, In dk, In dv, Out dx, Out dq_norm, Out dk_norm)>
      backward;
  int64_t largest_head_bytes = 0;  // of the d elements of a head; 0: the device has no such kernel
};

namespace cpu {
extern constinit const SplitQkvKernels split_qkv_kernels;  // tensor/cpu/split_qkv.cpp
}
namespace cuda {
extern constinit const SplitQkvKernels split_qkv_kernels;  // cuda/kernels/split_qkv.cu
}

}  // namespace braid
