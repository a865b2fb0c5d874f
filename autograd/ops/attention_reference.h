// The definition of the attention ops, for autograd/ops/attention.cpp: dcmha with AttentionImpl::reference.
#pragma once
#include "braid/autograd/attention_maps.h"
#include "braid/tensor/kernels/attention.h"

namespace braid {

// Shapes as in DcmhaInputs, any strides; result (B, T, N, d). Differentiable, because every op in it is.
Tensor attention_reference(const DcmhaInputs& x);
// Its intermediate results; does not read x.v.
AttentionMaps reference_maps(const DcmhaInputs& x);

}  // namespace braid
