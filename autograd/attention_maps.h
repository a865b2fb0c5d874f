// The maps of attention, which the fused kernels never form: for analysis and charts.
#pragma once
#include "braid/autograd/dcmha.h"

namespace braid {

// The maps (B, N, T, S) of each head, query and key. The letters are those of the formula in autograd/dcmha.h. Masked
// keys have score -inf and probability 0.
struct AttentionMaps {
  Tensor scores;           // S, scaled: before pre-compose
  Tensor scores_composed;  // S', after it
  Tensor probs;            // P = softmax(S'): before post-compose
  Tensor probs_composed;   // P', after it: what multiplies the values
};

// Computes the maps of dcmha() for these operands by the reference, all queries at once: 4 B N T S elements. With pre
// and post empty they are the maps of scaled_dot_product_attention(), and the composed maps equal the others. Their
// dtype is that of q, f32 for 16-bit types. Differentiable. Throws as dcmha() does.
AttentionMaps attention_maps(const Tensor& q, const Tensor& k, const HeadMixing& pre, const HeadMixing& post,
                             const DcmhaOptions& options = {});

}  // namespace braid
