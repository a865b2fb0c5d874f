// An attention call as parts that are calls of their own: block-diagonal attention computes each block alone.
#pragma once
#include <vector>

#include "braid/autograd/dcmha.h"
#include "braid/autograd/ops/attention_reference.h"
#include "braid/tensor/kernels/attention.h"

namespace braid::attention {

struct CallPart : QueryBlock {
  int64_t shift = 0;  // of the queries' positions, beyond what the block's place says: alignment to the last key
};

// The parts that the documents or the key lengths of a call make, checked; none without both. Samples of one length
// that follow each other are one part.
std::vector<CallPart> parts_of(const char* op, const DcmhaInputs& x, const SdpaOptions& options);
DcmhaInputs part_of(const DcmhaInputs& x, const CallPart& part);  // as raw views
// The extras of one block of the call x, as recorded slices.
AttentionExtras part_of(const AttentionExtras& extras, const DcmhaInputs& x, const QueryBlock& block);
Tensor entries_of(const Tensor& x, const QueryBlock& block);  // of (1 or B, 1 or N, T, S), a raw view
// The definition: that of each part by itself, put together. No parts: the whole call.
Tensor attention_reference(const DcmhaInputs& x, const std::vector<CallPart>& parts, const AttentionExtras& extras);

}  // namespace braid::attention
