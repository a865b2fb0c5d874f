// Embedding and loss of a language model whose vocabulary is sharded over tensor ranks.
#pragma once
#include "braid/autograd/losses.h"
#include "braid/distributed/comm/communicator.h"

namespace braid::dist {

// vocab: the partition of V, one range per tensor rank; v: the size of this rank's range.

// This rank's term of the embeddings of ids (B, T): zero rows for the ids of other ranks; the sum over ranks is the
// embedding. table (v, D): this rank's rows. Result (B, T, D) of type `type`.
Tensor vocab_parallel_embedding(const Tensor& table, const Tensor& ids, const Partition& vocab,
                                const Communicator& tensor, DType type);

// linear_cross_entropy (autograd/losses.h) with this rank's rows of the weight: the sum over counted targets of the
// cross-entropy, and z-loss, of the logits hidden weight^T, capped. hidden (B, T, D), the same on all tensor ranks;
// weight (v, D); targets (B, T), ids of the complete vocabulary, negative = not counted. The result () is the same on
// all ranks; backward gives each rank its term of the gradient of hidden, so hidden comes from all_gather() or
// copy_to_group().
Tensor vocab_parallel_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& targets,
                                    const Partition& vocab, const Communicator& tensor,
                                    const LinearLossOptions& options = {});

}  // namespace braid::dist
