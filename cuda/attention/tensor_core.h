// DCMHA on tensor cores: bf16, one group of 16 or 32 heads, key factors of rank 1 or 2. Each member of pre and post may
// be absent. cuda/attention/tensor_core.md explains how the kernels work.
#pragma once
#include "braid/tensor/kernels/attention.h"

namespace braid::cuda::attention::tensor_core {

// Why these kernels do not serve the call.
std::optional<std::string> unsupported_reason(const DcmhaInputs& x);

// As in the contract of dcmha_forward and dcmha_backward, for inputs that are supported. lse may be an empty handle.
// The rows of a call are computed in blocks that fit into `workspace` bytes.
void forward(const DcmhaInputs& x, Out y, Out lse, int64_t workspace = kAttentionWorkspace);
void backward(const DcmhaInputs& x, In y, In lse, In dy, DcmhaGradients& gradients,
              int64_t workspace = kAttentionWorkspace);

}  // namespace braid::cuda::attention::tensor_core
