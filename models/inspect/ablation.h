// The loss without a part of the model: a head, a term of Compose, all of a layer's Compose.
//
//   change[t] = loss of token t without the part - loss of token t with it
//
// A head is switched off by zeros in the columns of the output projection that read it, so that nothing of its output
// reaches the residual stream; with Compose it is the composed head. A term is switched off by a factor of 0
// (nn/attention/composition_scale.h), in one layer or in all.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braid/models/inspect/mixing_terms.h"
#include "braid/models/language_model.h"

namespace braid::models {

struct Ablation {
  std::optional<int64_t> layer;  // none: every layer
  std::optional<int64_t> head;
  // Without a head: these terms of these stages.
  bool pre = true, post = true;
  std::optional<MixingTerm> term;  // none: all, the stages do not mix heads

  // "head 3", "pre query-wise", "pre", "compose"
  std::string name() const;
};

// tokens (T) -> (T - 1) losses without the part. The model's weights are as before afterwards, also after an error.
// Error(misuse) for a head of a model whose layers have no parameter attention.wo.weight.
std::vector<double> losses_without(LanguageModel& model, const Ablation& ablation, int64_t layers,
                                   std::span<const int32_t> tokens);
// The heads that the output projection of a layer reads, each of which can be switched off; 0 where it has no such
// parameter.
int64_t output_heads(const LanguageModel& model, int64_t layer);

}  // namespace braid::models
