// Attention without compose in bf16 and f16: cut into calls for cuDNN, which serves such attention as one kernel.
#pragma once
#include "braid/tensor/kernels/attention.h"

namespace braid::cuda::attention::sdpa_cudnn {

// One call of cuDNN: all samples, rows and heads of these tensors. Their last axes are contiguous, all
// other strides, and where the tensors begin, are multiples of 16 bytes.
struct AttentionCall {
  Tensor q, k, v;      // (B, T, N, d), (B, S, Nkv, d)
  Tensor y, lse;       // (B, T, N, d); (B, N, T) in f32, contiguous: logarithm of the sum of exp(scores)
  Tensor dy;           // like q; empty: forward, which writes y and lse
  Tensor dq, dk, dv;   // like q, k and v
  AttentionMask mask;  // offset 0 or S - T; no row has all keys masked
  double scale;
};

// cuDNN compiles and loads a kernel when a call is new, which is no part of a graph: throws Error(misuse) then while
// one is captured. A call whose like ran once before has its kernel.
void check_may_plan(const AttentionCall& call);

// Bytes of dS that cuDNN's deterministic backward keeps for `heads` query heads of a sample with T queries and S keys.
int64_t gradient_bytes(int64_t heads, int64_t T, int64_t S);

// Runs the call. Throws as check_may_plan when the call is new. If cuDNN has no kernel for it, returns the reason and
// writes nothing.
// cuda/attention/cudnn_attention.cpp, its emulation, or cuda/attention/no_cudnn.cpp.
std::optional<std::string> run_attention(const AttentionCall& call);

// Why no call for cuDNN can be made of these inputs; of forward, and for backward in addition.
std::optional<std::string> unsupported_reason(const DcmhaInputs& x);
std::optional<std::string> backward_unsupported_reason(const DcmhaInputs& x, int64_t workspace);

// As in the contract of dcmha_forward and dcmha_backward, for inputs that are supported. If cuDNN finds no plan for the
// shapes, the reason is returned.
std::optional<std::string> forward(const DcmhaInputs& x, Out y, Out lse);
std::optional<std::string> backward(const DcmhaInputs& x, In y, In lse, In dy, DcmhaGradients& gradients,
                                    int64_t workspace);

}  // namespace braid::cuda::attention::sdpa_cudnn
