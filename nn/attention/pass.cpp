#include "braid/nn/attention/pass.h"

#include "braid/autograd/attention_maps.h"
#include "braid/autograd/ops.h"
#include "braid/autograd/record.h"
#include "braid/nn/attention/composed_attention.h"
#include "braid/nn/attention/paged_cache.h"

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

void observe_maps(const Pass& pass, const AttentionOperands& x, const DcmhaOptions& options) {
  const NoGrad off;
  AttentionMaps maps = attention_maps(x.q, x.k, x.pre, x.post, options);
  if (x.probabilities) {
    maps.probs = x.probabilities(attention_scores(x.q, x.k, options), options.mask);
    maps.probs_composed = maps.probs;
  }
  for (auto& [name, value] : {std::pair{"q", &x.q},
                              {"k", &x.k},
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
  if (x.probabilities) return composed_attention(x, options);
  if (x.paged) return x.paged->attend(x, options);
  const bool mixed = !x.pre.empty() || !x.post.empty();
  return mixed ? dcmha(x.q, x.k, x.v, x.pre, x.post, options) : scaled_dot_product_attention(x.q, x.k, x.v, options);
}

}  // namespace braid::nn
