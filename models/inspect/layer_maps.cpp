#include "braid/models/inspect/layer_maps.h"

#include <cmath>
#include <tuple>

#include "braid/autograd/attention_maps.h"
#include "braid/autograd/record.h"

namespace braid::models {

const char* name_of(MapKind kind) {
  constexpr const char* names[] = {"attn_scores", "attn_scores_composed", "attn_probs", "attn_probs_composed"};
  return names[static_cast<size_t>(kind)];
}

bool LayerMaps::unmasked(int64_t query, int64_t key) const {
  return std::isfinite((*this)[MapKind::scores][static_cast<size_t>(query * tokens + key)]);
}

LayerMaps layer_maps(const LayerTensors& observed, const SdpaOptions* all_pairs) {
  const NoGrad off;
  LayerMaps maps;
  const Tensor& scores = observed.at("attn_scores");  // (B, N, T, T)
  maps.heads = scores.dim(1);
  maps.tokens = scores.dim(2);
  for (const MapKind kind : kMapKinds)
    maps.maps[static_cast<size_t>(kind)] = observed.at(name_of(kind)).to_vector<double>();
  maps.pre_weights = observed_mixing(observed, "pre");
  maps.post_weights = observed_mixing(observed, "post");
  std::tie(maps.groups, maps.rank) = groups_and_rank(observed);
  maps.pre = MixingTerms(maps.pre_weights, maps.heads);
  maps.post = MixingTerms(maps.post_weights, maps.heads);
  if (!all_pairs) return maps;
  DcmhaOptions options{*all_pairs, maps.groups};
  options.mask.causal = false;
  const AttentionMaps all =
      attention_maps(observed.at("q"), observed.at("k"), maps.pre_weights, maps.post_weights, options);
  maps.all_scores = all.scores.to_vector<double>();
  maps.all_scores_composed = all.scores_composed.to_vector<double>();
  return maps;
}

}  // namespace braid::models
