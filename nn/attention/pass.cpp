#include "braid/nn/attention/pass.h"

#include "braid/autograd/attention_maps.h"
#include "braid/autograd/ops.h"
#include "braid/autograd/record.h"
#include "braid/autograd/reductions.h"
#include "braid/nn/attention/composed_attention.h"
#include "braid/nn/attention/paged_cache.h"
#include "braid/nn/attention/variant.h"

namespace braid::nn {

namespace {

void observe_weights(const Pass& pass, const AttentionOperands& x) {
  for (auto& [stage, c] : {std::pair{"dyn.pre", &x.pre}, {"dyn.post", &x.post}}) {
    for (auto& [name, weight] : {std::pair{".w", &c->base},
                                 {"_q.w1", &c->q_down},
                                 {"_q.w2", &c->q_up},
                                 {"_q.dd", &c->q_gate},
                                 {"_k.w1", &c->k_down},
                                 {"_k.w2", &c->k_up},
                                 {"_k.dd", &c->k_gate}}) {
      if (*weight) pass.observe(*weight, stage, name);
    }
  }
}

// The call of attend() among P pseudo tokens of each token, and its operands. A token's window ends before the first
// of its pseudo tokens that a row of them may not attend to.
struct PseudoCall {
  PseudoCall(const AttentionOperands& of_tokens, const DcmhaOptions& call) : x(of_tokens), options(call) {
    const int64_t P = x.pseudo->pseudo_tokens();
    x.pseudo->expand(x);
    x.pseudo = nullptr;
    AttentionMask& mask = options.mask;
    mask = {mask.causal, mask.window == 0 ? 0 : mask.window * P - (P - 1), mask.offset * P};
    if (!call.documents) return;
    documents = *call.documents;
    for (Document& d : documents) d.begin *= P, d.end *= P;
    options.documents = &documents;
  }
  PseudoCall(const PseudoCall&) = delete;
  PseudoCall& operator=(const PseudoCall&) = delete;
  AttentionOperands x;
  DcmhaOptions options;
  std::vector<Document> documents;
};

AttentionMaps maps_of(const AttentionOperands& x, const DcmhaOptions& options) {
  AttentionMaps maps = attention_maps(x.q, slice(x.k, 3, 0, x.q.dim(3)), x.pre, x.post, options);
  if (x.pseudo) {  // what a token's pseudo tokens get from those of another, in all
    const PseudoCall call(x, options);
    const Tensor p = maps_of(call.x, call.options).probs;  // (B, N, T P, S P)
    const Tensor of_keys = sum(reshape(p, {p.dim(0), p.dim(1), p.dim(2), x.k.dim(1), x.pseudo->pseudo_tokens()}), {4});
    maps.probs = permute(x.pseudo->collapse(permute(of_keys, {0, 2, 1, 3})), {0, 2, 1, 3});
    maps.probs_composed = maps.probs;
  } else if (x.composed) {
    maps.scores_composed = x.composed.scores(x.q, x.k, options, options.mask);
    maps.probs = maps.probs_composed = x.composed.probabilities(maps.scores_composed, options.mask);
  }
  return maps;
}

void observe_maps(const Pass& pass, const AttentionOperands& x, const DcmhaOptions& options) {
  const NoGrad off;
  const AttentionMaps maps = maps_of(x, options);
  const Tensor k = slice(x.k, 3, 0, x.q.dim(3));
  for (auto& [name, value] : {std::pair{"q", &x.q},
                              {"k", &k},
                              {"v", &x.v},
                              {"attn_scores", &maps.scores},
                              {"attn_scores_composed", &maps.scores_composed},
                              {"attn_probs", &maps.probs},
                              {"attn_probs_composed", &maps.probs_composed}})
    pass.observe(*value, name);
}

}  // namespace

Rope::Tables Pass::rotation(int64_t T, bool local) const {
  const Rope& of_layer = local ? local_rope : rope;
  if (!of_layer) return {};
  const Tensor positions = shards ? shards->positions() : Tensor();
  return positions ? of_layer.tables(positions) : of_layer.tables(position(), T);
}

Tensor Pass::attend(AttentionOperands x, DcmhaOptions options, const ShardContext::Heads& heads) const {
  if (observer) observe_weights(*this, x);
  options.documents = documents.get();
  if (shards) x = shards->exchange(x, options.mask, heads);
  if (cache) {
    check(!documents, "attention", "documents are packed without a cache");
    check(!recording({x.q, x.k, x.v}), "attention", "a cache carries no gradients; decode under NoGrad");
    cache->extend(x, options);
  }
  if (shards) return shards->attend(x, options, heads);
  if (observer && observer->requested(str(part, "attention_maps"))) observe_maps(*this, x, options);
  return nn::attend(x, options);
}

Tensor attend(const AttentionOperands& x, const DcmhaOptions& options) {
  if (x.pseudo) {
    const PseudoCall call(x, options);
    return x.pseudo->collapse(attend(call.x, call.options));
  }
  if (x.composed) return composed_attention(x, options);
  if (x.paged) return x.paged->attend(x, options);
  const bool mixed = !x.pre.empty() || !x.post.empty();
  return mixed ? dcmha(x.q, x.k, x.v, x.pre, x.post, options) : scaled_dot_product_attention(x.q, x.k, x.v, options);
}

}  // namespace braid::nn
