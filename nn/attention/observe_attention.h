// The intermediate results of attention that an observer receives; their names are listed in apps/dump/names.md.
#pragma once
#include "braid/nn/observer.h"
#include "braid/nn/shard_context.h"

namespace braid::nn {

// The weights of Compose that exist, dyn.pre.w, dyn.pre_q.w1, ...; nothing without an observer.
void observe_weights(const ActivationObserver* observer, const AttentionOperands& x);
// Where the observer requests "attention_maps": q, k, v and the maps. The attention op forms no maps, so they are
// computed for the observer alone, without history.
void observe_maps(const ActivationObserver* observer, const AttentionOperands& x, const DcmhaOptions& options);

}  // namespace braid::nn
