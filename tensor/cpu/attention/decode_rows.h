// The driver of decoding: query rows against keys that were computed before. A row's bits depend on the row and its own
// keys alone, the same for both functions.
#pragma once
#include "braid/tensor/kernels/attention.h"

namespace braid::cpu::attention {

// The keys of a sample lie one after the other, as a call of the op has them.
void decode(const DcmhaInputs& x, Out y);
// They lie in blocks: AttentionKernels::paged.
void paged_attention(const DcmhaInputs& x, const PagedRows& rows, Out y);

}  // namespace braid::cpu::attention
