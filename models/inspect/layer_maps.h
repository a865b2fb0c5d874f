// The attention of one layer on one window of text, as numbers in f64.
#pragma once
#include <array>
#include <span>

#include "braid/autograd/dcmha.h"
#include "braid/models/inspect/capture.h"
#include "braid/models/inspect/mixing_terms.h"

namespace braid::models {

// The four maps of a layer. Ranks of scores are those of all pairs (LayerMaps::all_scores), without the mask.
enum class MapKind : uint8_t { scores, scores_composed, probs, probs_composed };
inline constexpr std::array kMapKinds = {MapKind::scores, MapKind::scores_composed, MapKind::probs,
                                         MapKind::probs_composed};
const char* name_of(MapKind kind);  // as in braid dump: "attn_scores", ...

struct LayerMaps {
  int64_t heads = 0, groups = 1, rank = 0, tokens = 0;  // N, G, R, T
  // By MapKind: (N, T, T) of sample 0. Masked keys have the score -inf and the probability 0.
  std::array<std::vector<double>, kMapKinds.size()> maps;
  // (N, T, T): the scores of all pairs, future and far keys among them: without a softcap the matrices whose rank
  // q k^T bounds.
  std::vector<double> all_scores, all_scores_composed;
  MixingTerms pre, post;
  HeadMixing pre_weights, post_weights;  // as the layer passed them on

  const std::vector<double>& operator[](MapKind kind) const { return maps[static_cast<size_t>(kind)]; }
  bool unmasked(int64_t query, int64_t key) const;
  // (T) values of a head's query in one of the maps.
  std::span<const double> row(MapKind kind, int64_t head, int64_t query) const {
    return {(*this)[kind].data() + (head * tokens + query) * tokens, static_cast<size_t>(tokens)};
  }
};

// `observed`: of a layer whose maps were formed (CaptureRequest::maps). With `all_pairs`, the scale and softcap of the
// model's scores, the scores of all pairs are computed too, from q, k and the weights of Compose.
LayerMaps layer_maps(const LayerTensors& observed, const SdpaOptions* all_pairs = nullptr);

}  // namespace braid::models
