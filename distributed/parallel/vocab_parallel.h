// The two ends of a language model with the vocabulary dealt out over tensor ranks.
#pragma once
#include "braid/distributed/sharding/sequence_shard.h"
#include "braid/nn/module.h"

namespace braid::dist {

// This rank's term of the embeddings of ids (B, T): zero rows for the ids of other ranks; the sum over ranks is the
// embedding. table (v, D): the rows of this rank. Result (B, T, D) of type `type`.
Tensor vocab_parallel_embedding(const Tensor& table, const Tensor& ids, const Partition& words,
                                const Communicator& tensor, DType type);

// linear_cross_entropy (autograd/ops.h) with our words of the weight: the sum over counted targets of the cross-entropy
// of hidden weight^T. hidden (B, Tc, D), the same on all tensor ranks; weight (v, D); targets (B, Tc), ids of the whole
// vocabulary, negative = not counted. The result () is the same on all ranks; backward() gives each rank its share of
// the gradient of hidden, so hidden comes from all_gather().
Tensor vocab_parallel_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& targets,
                                    const Partition& words, const Communicator& tensor, int64_t chunk_rows = 1024);

}  // namespace braid::dist
