// The two ends of a language model with the vocabulary dealt out over tensor ranks.
#pragma once
#include "distributed/rows.h"
#include "nn/module.h"

namespace braid::dist {

// Our rows of the embeddings of ids (B, Tc), the token ids of the context rank's rows. table: our words (v, D).
// Result (B, t, D) of type `type`. Every rank looks up the words it has; the sum over ranks has them all.
Tensor parallel_embedding(const Tensor& table, const Tensor& ids, const Parts& words, const Parts& rows,
                          const Communicator& tensor, DType type);

// linear_cross_entropy (autograd/ops.h) with our words of the weight: the sum over counted targets of the cross-entropy
// of hidden weight^T. hidden (B, Tc, D), the same on all tensor ranks; weight (v, D); targets (B, Tc), ids of the whole
// vocabulary, negative = not counted. The result () is the same on all ranks; backward() gives each rank its share of
// the gradient of hidden, so hidden comes from gather().
Tensor parallel_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& targets, const Parts& words,
                              const Communicator& tensor, int64_t chunk_rows = 1024);

}  // namespace braid::dist
