#include "braid/nn/attention/observe_attention.h"

#include "braid/autograd/attention_maps.h"
#include "braid/autograd/record.h"

namespace braid::nn {

void observe_weights(const ActivationObserver* observer, const AttentionOperands& x) {
  if (!observer) return;
  for (auto& [stage, c] : {std::pair{"dyn.pre", &x.pre}, {"dyn.post", &x.post}}) {
    for (auto& [name, weight] : {std::pair{".w", &c->base},
                                 {"_q.w1", &c->q_down},
                                 {"_q.w2", &c->q_up},
                                 {"_q.dd", &c->q_gate},
                                 {"_k.w1", &c->k_down},
                                 {"_k.w2", &c->k_up},
                                 {"_k.dd", &c->k_gate}}) {
      if (*weight) (*observer)(str(stage, name), *weight);
    }
  }
}

void observe_maps(const ActivationObserver* observer, const AttentionOperands& x, const DcmhaOptions& options) {
  if (!observer || !observer->requested("attention_maps")) return;
  const NoGrad off;
  const AttentionMaps maps = attention_maps(x.q, x.k, x.pre, x.post, options);
  for (auto& [name, value] : {std::pair{"q", &x.q},
                              {"k", &x.k},
                              {"v", &x.v},
                              {"attn_scores", &maps.scores},
                              {"attn_scores_composed", &maps.scores_composed},
                              {"attn_probs", &maps.probs},
                              {"attn_probs_composed", &maps.probs_composed}})
    (*observer)(name, *value);
}

}  // namespace braid::nn
