// Attention of a decoder to the states of an encoder, plain or composed (DCMHA): queries and the query-wise weights of
// Compose come from the decoder's states, keys, values and the key-wise weights from the encoder's. The static term is
// kept with the query-wise weights.
//
//   x (B, T, D) ─► wq, dyn_query ─► q, query-wise, static ─┐
//                                                           ├─► Compose, softmax, Compose ─► wo ─► (B, T, D)
//   h (B, S, D) ─► wkv, dyn_key ─► k, v, key-wise ──────────┘   no mask but the lengths of sources
#pragma once
#include <optional>

#include "braid/autograd/dcmha.h"
#include "braid/nn/attention/composition.h"
#include "braid/nn/layers/linear.h"

namespace braid::nn {

struct CrossAttentionOptions {
  int64_t width = 0, heads = 0;
  bool compose = true;  // DCMHA; false, or with nothing that mixes heads: scaled dot-product attention
  CompositionOptions composition_options = {};
  Linear::Options projection = {};
  AttentionImpl impl = AttentionImpl::automatic;
};

class CrossAttention final : public Module {
 public:
  CrossAttention() = default;
  CrossAttention(const CrossAttentionOptions& options, RandomKey key);

  // The encoder's side, which every query reads: made once per source, for all steps of a decoder.
  struct Source {
    Tensor k, v;              // (B, S, N, d)
    KeyWiseMixing pre, post;  // empty without them
    std::vector<int64_t> lengths;
  };
  // states (B, S, D). lengths (B): positions that each sample has, the others are padding; empty: all have S.
  Source source(const Tensor& states, std::vector<int64_t> lengths = {}) const;
  Tensor operator()(const Tensor& x, const Source& source) const;  // (B, T, D) -> (B, T, D)
  void visit(Visitor& v) const override;

 private:
  CrossAttentionOptions options_;
  int64_t head_dim_ = 0;
  Linear q_, kv_, out_;
  std::optional<CompositionWeights> query_, key_;  // none where that side mixes nothing
};

}  // namespace braid::nn
