// Attention whose probabilities are a function of all scores, for variants that no fused kernel serves
// (AttentionVariantRule::composed).
//
//   s = scores(q, k)  (B, N, T, S), but for variants scale q k^T with a softcap as in autograd/dcmha.h,
//   p = probabilities(s, mask),   y = p v
#pragma once
#include "braid/nn/shard_context.h"

namespace braid::nn {

// y (B, T, N, d) of `composed` operands, in the type of q; 16-bit types compute in f32. Of the options it reads mask,
// documents, scale and softcap. It works on blocks of query rows, and backward computes each block again: memory for
// the scores of one block. A trace counts it as a kernel, over unmasked keys, and the products of the variants with
// these scores.
Tensor composed_attention(const AttentionOperands& x, const DcmhaOptions& options);

// scale q k^T with its softcap, in accumulate_type of q; of each key the first d elements.
Tensor attention_scores(const Tensor& q, const Tensor& k, const DcmhaOptions& options);

}  // namespace braid::nn
