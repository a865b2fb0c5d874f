// Attention without compose in bf16 and f16: cut into calls for cuDNN, which serves such attention as one kernel.
#pragma once
#include "braid/tensor/kernels/backend.h"

namespace braid::cuda {

// What cuDNN is asked for at a time: all samples, rows and heads of these tensors. Their last axes are contiguous, all
// other strides, and where the tensors begin, are multiples of 16 bytes.
struct AttentionCall {
  Tensor q, k, v;         // (B, T, N, d), (B, S, Nkv, d)
  Tensor y, lse;          // (B, T, N, d); (B, N, T) in f32, contiguous: logarithm of the sum of exp(scores)
  Tensor dy;              // like q; empty: forward, which writes y and lse
  Tensor dq, dk, dv;      // like q, k and v
  AttentionMask visible;  // offset 0 or S - T; every row sees a key
  double scale;
};

// "" when it was done, otherwise why not in a sentence, and nothing was written. cuda/attention/cudnn_attention.cpp,
// its emulation, or cuda/attention/no_cudnn.cpp.
std::string run_attention(const AttentionCall& call);

namespace plain_attention {

// As in the contract of Backend::dcmha_forward and dcmha_backward: "" when it was done, otherwise why the call is not
// for cuDNN.
std::string forward(const DcmhaInputs& x, Out y, Out lse);
std::string backward(const DcmhaInputs& x, In y, In lse, In dy, DcmhaGradients& gradients, int64_t workspace);

}  // namespace plain_attention

}  // namespace braid::cuda
