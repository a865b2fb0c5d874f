// Attention of a few query rows against a cache, without derivative: one pass over the keys, one over the values.
#pragma once
#include "braid/tensor/kernels/attention.h"

namespace braid::cuda::attention::decode {

// Whether these kernels serve the call: few rows, whose scores of a tile of keys fit into shared memory.
bool supports(const DcmhaInputs& x);
void forward(const DcmhaInputs& x, Out y);

}  // namespace braid::cuda::attention::decode
