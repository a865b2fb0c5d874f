#include "braid/models/inspect/ablation.h"

#include "braid/autograd/record.h"
#include "braid/models/inspect/capture.h"
#include "braid/models/inspect/parameter_named.h"
#include "braid/models/inspect/token_losses.h"

namespace braid::models {

namespace {

double& factor(nn::CompositionScale::Stage& stage, MixingTerm term) {
  using Stage = nn::CompositionScale::Stage;
  constexpr double Stage::*factors[] = {&Stage::base, &Stage::query, &Stage::key, &Stage::query_gate, &Stage::key_gate};
  return stage.*factors[static_cast<size_t>(term)];
}

std::vector<nn::CompositionScale> factors_of(const Ablation& ablation, int64_t layers) {
  nn::CompositionScale off;
  if (ablation.head) off.without_head = *ablation.head;
  for (const auto& [stage, part] : {std::pair{&off.pre, ablation.pre}, {&off.post, ablation.post}})
    for (const MixingTerm term : kMixingTerms)
      if (part && !ablation.head && (!ablation.term || *ablation.term == term)) factor(*stage, term) = 0;
  std::vector<nn::CompositionScale> factors(static_cast<size_t>(layers));
  for (int64_t i = 0; i < layers; ++i)
    if (!ablation.layer || *ablation.layer == i) factors[static_cast<size_t>(i)] = off;
  return factors;
}

}  // namespace

std::string Ablation::name() const {
  if (head) return str("head ", *head);
  const std::string stage = pre && post ? "" : pre ? "pre" : "post";
  if (term) return (stage.empty() ? "" : stage + " ") + name_of(*term);
  return stage.empty() ? "compose" : stage;
}

std::vector<double> losses_without(const LanguageModel& model, const Ablation& ablation, int64_t layers,
                                   std::span<const int32_t> tokens) {
  const auto exists = [](const char* what, std::optional<int64_t> i, int64_t count) {
    check(!i || (*i >= 0 && *i < count), ErrorKind::setting,
          [&] { return str("there is no ", what, " ", *i, ": expected one from 0 to ", count - 1); });
  };
  exists("layer", ablation.layer, layers);
  if (ablation.head) {
    exists("head", ablation.head, heads_of(model));
    check(ablation.layer.has_value(), ErrorKind::setting, "a head is one of a layer: expected a layer beside it");
  }
  const NoGrad off;
  return token_losses(model, scaled_hidden(model, token_ids(model, tokens), factors_of(ablation, layers)), tokens);
}

}  // namespace braid::models
