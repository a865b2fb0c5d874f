// Attention whose probabilities are a function of all scores, for variants that no fused kernel serves
// (AttentionVariantRule::composed).
//
//   s = scale q k^T  (B, N, T, S), with a softcap as in autograd/dcmha.h,   p = probabilities(s, mask),   y = p v
#pragma once
#include "braid/nn/shard_context.h"

namespace braid::nn {

// y (B, T, N, d) of operands with `probabilities`, in the type of q; 16-bit types compute in f32. Of the options it
// reads mask, documents, scale and softcap. It works on blocks of query rows, and backward computes each block again:
// memory for the scores of one block.
Tensor composed_attention(const AttentionOperands& x, const DcmhaOptions& options);

// s of the formula, in accumulate_type of q.
Tensor attention_scores(const Tensor& q, const Tensor& k, const DcmhaOptions& options);

}  // namespace braid::nn
