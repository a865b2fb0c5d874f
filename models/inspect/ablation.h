// The loss without a part of the model: a head, a term of Compose, all of a layer's Compose.
//
//   change[t] = loss of token t without the part - loss of token t with it
//
// A head is switched off by zeros in place of its output, so that nothing of it reaches the residual stream; with
// Compose it is the composed head. A term is switched off by a factor of 0, in one layer or in all
// (nn/attention/composition_scale.h).
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

// tokens (T) -> (T - 1) losses without the part. The weights stay as they are, so threads may share the model.
// Error(setting) for a layer or head that does not exist.
std::vector<double> losses_without(const LanguageModel& model, const Ablation& ablation, int64_t layers,
                                   std::span<const int32_t> tokens);

}  // namespace braid::models
