// The definition of the attention ops, for autograd/ops/attention.cpp: dcmha with AttentionImpl::reference.
#pragma once
#include "braid/autograd/attention_maps.h"
#include "braid/tensor/kernels/attention.h"

namespace braid {

// What a call of the definition may have beside DcmhaInputs (autograd/dcmha.h); empty handles and 0: nothing.
struct AttentionExtras {
  Tensor attend, bias;
  BiasPlace bias_place = BiasPlace::before_compose;
  double dropout = 0;
  RandomKey dropout_key = {};
};

// Shapes as in DcmhaInputs, any strides, values (B, S, Nkv, dv); result (B, T, N, dv). Differentiable, because every op
// in it is.
Tensor attention_reference(const DcmhaInputs& x, const AttentionExtras& extras = {});
// Its intermediate results; does not read x.v.
AttentionMaps reference_maps(const DcmhaInputs& x);

}  // namespace braid
