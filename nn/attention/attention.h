// Self-attention of a decoder: scaled dot-product attention (with grouped key/value heads), or its
// composed form, DCMHA; with variants (variant.h) around either.
//
// Over several processes the projections are sharded by heads. DCMHA mixes the heads of a group, so the step between
// them depends on the groups:
//
//   (a) no group spans ranks          own rows --gather_rows--> all rows --> q, k, v, compose weights of its groups
//                                     --> attention --> y of its heads --> wo --reduce_rows--> own rows
//   (b) groups span ranks (G = 1)     the same q, k, v of its heads; compose weights of all heads from its own rows
//                                     --exchange--> q, k, v of all heads for its own rows --> attention
//                                     --exchange--> y of its heads, all rows --> wo --reduce_rows--> own rows
//
// Grouped key/value heads are sharded evenly, as query heads are. Where a rank's query heads read key/value heads of
// other ranks (the number of ranks does not divide theirs), route (a) gets those by --exchange--> too.
#pragma once
#include <functional>

#include "braid/autograd/dcmha.h"
#include "braid/nn/attention/composition.h"
#include "braid/nn/attention/kv_cache.h"
#include "braid/nn/attention/pass.h"
#include "braid/nn/attention/qk_norm.h"
#include "braid/nn/attention/variant.h"
#include "braid/nn/layers/linear.h"

namespace braid::nn {

struct AttentionOptions {
  int64_t width = 0, heads = 0;
  int64_t head_dim = 0;  // 0: width / heads
  int64_t kv_heads = 0;  // divides heads, head n reads key/value head n / (heads / kv_heads); 0: heads
  bool qk_norm = false;  // RMS norms of queries and keys, before the rotation (qk_norm.h)
  double qk_norm_eps = 1e-5;
  bool qk_norm_all_heads = false, qk_norm_offset = false;
  double score_scale = 0;   // of the scores, 0: 1 / sqrt(head_dim)
  double softcap = 0;       // c: scores s become c tanh(s / c) before heads are mixed and keys masked; 0: none
  bool local_rope = false;  // the rotation is Pass::local_rope
  bool compose = true;      // DCMHA; false, or with nothing that mixes heads: scaled dot-product attention
  CompositionOptions composition_options = {};
  std::vector<std::string> variants = {};  // by name (variant.h), applied in this order
  int64_t vocabulary = 0;                  // V, for variants that read tokens
  // A composition of one's own, by ops: scores (B, N, T, S), scaled and not yet masked -> the same. Not beside DCMHA;
  // attention then runs as composed_attention.h says. Tensors that it captures get their gradients, and are the
  // caller's to list.
  std::function<Tensor(const Tensor& scores)> compose_scores = nullptr;
  bool causal = true;
  int64_t window = 0;         // unmasked keys of a query in a full pass, 0: no limit
  int64_t decode_window = 0;  // the same in one-token steps against a cache
  Linear::Options projection = {};
  bool output_bias = true;  // of the output projection, where projections have biases
  AttentionImpl impl = AttentionImpl::automatic;
  int64_t workspace = 0;  // of SdpaOptions
};

// (B, t, D) each, already normalised; k and v may be empty: all read q.
struct AttentionInputs {
  AttentionInputs(Tensor x) : q(std::move(x)) {}
  AttentionInputs(Tensor of_q, Tensor of_k, Tensor of_v) : q(std::move(of_q)), k(std::move(of_k)), v(std::move(of_v)) {}
  Tensor q, k, v;
};

class Attention final : public Module {
 public:
  Attention() = default;
  Attention(const AttentionOptions& options, RandomKey key);

  // x (B, T, D) -> (B, T, D). Compose and the variants read the input of the queries. The observer gets the weights of
  // Compose, dyn.*. Where it requests "attention_maps", it also gets q, k, v after norm and rotation (with a cache: k
  // and v of every position held) and attn_scores, attn_scores_composed, attn_probs and attn_probs_composed (B, N, T,
  // S), the members of AttentionMaps; in one process only, and not for packed documents.
  Tensor operator()(const AttentionInputs& x, const Pass& pass = {}) const;
  void visit(Visitor& v) const override;
  const AttentionOptions& options() const { return options_; }
  bool gives(const Pass& pass) const { return variants_.gives(pass); }  // to later layers, by Pass::shared
  void workspace(int64_t bytes) { options_.workspace = bytes; }

 private:
  bool composed() const { return variants_.composed() || options_.compose_scores; }

  AttentionOptions options_;  // of all ranks together
  Linear qkv_;                // rows: all queries, all keys, all values of this rank's heads; head-major
  Linear out_;
  QkNorm qk_norm_;
  CompositionWeights compose_;
  AttentionVariants variants_;
};

}  // namespace braid::nn
