// Documents of packed sequences as parts of an attention call: block-diagonal attention computes each block alone.
#pragma once
#include <vector>

#include "braid/autograd/dcmha.h"
#include "braid/autograd/ops/attention_reference.h"
#include "braid/tensor/kernels/attention.h"

namespace braid {

// The query rows of each document, and the keys that they may attend to; documents without a query row here are left
// out. Throws when some query row is in no document, or the documents are not in order.
std::vector<QueryBlock> document_blocks(const char* op, const DcmhaInputs& x, const std::vector<Document>& documents);
// All query rows, and the keys that their samples have; samples of one length that follow each other are one block.
std::vector<QueryBlock> length_blocks(const char* op, const DcmhaInputs& x, const std::vector<int64_t>& key_lengths);
// The definition: attention_reference() of each block by itself, put together. compute_again: backward does so, so that
// no block's scores stay in memory. The pattern of dropout is a function of its key and of the blocks.
Tensor attention_reference(const DcmhaInputs& x, const std::vector<QueryBlock>& blocks,
                           const AttentionExtras& extras = {}, bool compute_again = false);

}  // namespace braid
