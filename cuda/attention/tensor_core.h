// Attention with compose on tensor cores: bf16, one group of 16 or 32 heads, keys' factors of rank 1 or 2. Each member
// of pre and post may be absent. cuda/README.md says how the kernels work.
#pragma once
#include "braid/tensor/kernels/backend.h"

namespace braid::cuda::dcmha_fast {

// Why these inputs are not for these kernels, as a sentence; "" when they are.
std::string refuses(const DcmhaInputs& x);

// As in the contract of Backend::dcmha_forward and dcmha_backward, for inputs that are not refused. lse may be an empty
// handle. The rows of a call are worked off in chunks that fit into `workspace` bytes.
void forward(const DcmhaInputs& x, Out y, Out lse, int64_t workspace = kDcmhaWorkspace);
void backward(const DcmhaInputs& x, In y, In lse, In dy, DcmhaGradients& gradients,
              int64_t workspace = kDcmhaWorkspace);

}  // namespace braid::cuda::dcmha_fast
