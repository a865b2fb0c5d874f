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

// The maps of dcmha() on these operands, by its composed meaning and of every query at once: 4 B N T S elements.
// Without mixing (both empty) those of scaled_dot_product_attention(), where composed and not are the same. In the type
// of q, in f32 for 16-bit types. Differentiable. Errors are those of dcmha().
AttentionMaps attention_maps(const Tensor& q, const Tensor& k, const HeadMixing& pre, const HeadMixing& post,
                             const DcmhaOptions& options = {});

}  // namespace braid
