// The attention of one layer on one window of text, as numbers in f64.
#pragma once
#include <span>

#include "braid/models/inspect/capture.h"
#include "braid/models/inspect/mixing_terms.h"

namespace braid::models {

struct LayerMaps {
  int64_t heads = 0, groups = 1, rank = 0, tokens = 0;  // N, G, R, T
  // (N, T, T): braid dump's attn_scores, attn_scores_composed, attn_probs, attn_probs_composed of sample 0. Masked keys
  // have the score -inf and the probability 0.
  std::vector<double> scores, scores_composed, probs, probs_composed;
  // (N, T, T): the scores of all pairs, future and far keys among them: the matrices whose rank q k^T bounds.
  std::vector<double> all_scores, all_scores_composed;
  MixingTerms pre, post;
  HeadMixing pre_weights, post_weights;  // as the layer passed them on

  bool composed() const { return !pre_weights.empty() || !post_weights.empty(); }
  bool unmasked(int64_t query, int64_t key) const;
  // (T) values of a head's query in one of the maps.
  std::span<const double> row(const std::vector<double>& map, int64_t head, int64_t query) const {
    return {map.data() + (head * tokens + query) * tokens, static_cast<size_t>(tokens)};
  }
};

// `observed`: of a layer whose maps were formed (CaptureRequest::maps). With `all_pairs` the scores of all pairs are
// computed too, from q, k and the weights of Compose.
LayerMaps layer_maps(const LayerTensors& observed, bool all_pairs);

}  // namespace braid::models
