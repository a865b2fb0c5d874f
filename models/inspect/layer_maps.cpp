#include "braid/models/inspect/layer_maps.h"

#include <cmath>

#include "braid/autograd/attention_maps.h"
#include "braid/autograd/record.h"

namespace braid::models {

bool LayerMaps::unmasked(int64_t query, int64_t key) const {
  return std::isfinite(scores[static_cast<size_t>(query * tokens + key)]);
}

LayerMaps layer_maps(const LayerTensors& observed, bool all_pairs) {
  const NoGrad off;
  LayerMaps maps;
  const Tensor& scores = observed.at("attn_scores");  // (B, N, T, T)
  maps.heads = scores.dim(1);
  maps.tokens = scores.dim(2);
  maps.scores = scores.to_vector<double>();
  maps.scores_composed = observed.at("attn_scores_composed").to_vector<double>();
  maps.probs = observed.at("attn_probs").to_vector<double>();
  maps.probs_composed = observed.at("attn_probs_composed").to_vector<double>();
  maps.pre_weights = observed_mixing(observed, "pre");
  maps.post_weights = observed_mixing(observed, "post");
  for (const HeadMixing* stage : {&maps.pre_weights, &maps.post_weights}) {
    if (stage->base) maps.groups = stage->base.dim(0);
    for (const Tensor* gate : {&stage->q_gate, &stage->k_gate})
      if (*gate) maps.groups = gate->dim(2);
    for (const Tensor* up : {&stage->q_up, &stage->k_up})
      if (*up) maps.rank = up->dim(3);
  }
  maps.pre = MixingTerms(maps.pre_weights, maps.heads);
  maps.post = MixingTerms(maps.post_weights, maps.heads);
  if (!all_pairs) return maps;
  DcmhaOptions options;
  options.groups = maps.groups;
  options.mask.causal = false;
  const AttentionMaps all =
      attention_maps(observed.at("q"), observed.at("k"), maps.pre_weights, maps.post_weights, options);
  maps.all_scores = all.scores.to_vector<double>();
  maps.all_scores_composed = all.scores_composed.to_vector<double>();
  return maps;
}

}  // namespace braid::models
