// Documents of packed sequences as parts of an attention call: block-diagonal attention computes each block alone.
#pragma once
#include <vector>

#include "braid/autograd/dcmha.h"
#include "braid/tensor/kernels/attention.h"

namespace braid {

// The query rows of each document, and the keys that they may attend to; documents without a query row here are left
// out. Throws when some query row is in no document, or the documents are not in order.
std::vector<QueryBlock> document_blocks(const char* op, const DcmhaInputs& x, const std::vector<Document>& documents);
// The definition: attention_reference() of each document by itself, put together.
Tensor attention_reference(const DcmhaInputs& x, const std::vector<QueryBlock>& documents);

}  // namespace braid
