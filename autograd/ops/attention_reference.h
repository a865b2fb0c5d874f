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
  double softcap = 0;
  Tensor dropped = {};  // (B, N, T, S) u8, 1 where an entry becomes 0: what part_of() makes of probability and key
  bool empty() const { return !attend && !bias && dropout == 0 && softcap == 0; }
};

// Shapes as in DcmhaInputs, any strides, values (B, S, Nkv, dv); result (B, T, N, dv). Of the extras' dropout only
// `dropped` is read. Differentiable, because every op in it is.
Tensor attention_reference(const DcmhaInputs& x, const AttentionExtras& extras = {});
// Its intermediate results; does not read x.v, and of the extras softcap alone.
AttentionMaps reference_maps(const DcmhaInputs& x, const AttentionExtras& extras = {});

}  // namespace braid
