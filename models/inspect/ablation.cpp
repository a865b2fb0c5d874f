#include "braid/models/inspect/ablation.h"

#include "braid/autograd/ops.h"
#include "braid/autograd/record.h"
#include "braid/models/inspect/capture.h"
#include "braid/models/inspect/parameter_named.h"
#include "braid/models/inspect/token_losses.h"

namespace braid::models {

namespace {

// Zeros in the columns of a head while one lives.
class HeadOff {
 public:
  HeadOff(const Tensor& projection, int64_t head, int64_t head_dim)
      : columns_(projection.detach().sliced(1, head * head_dim, (head + 1) * head_dim)), kept_(columns_.clone()) {
    columns_.fill(0);
  }
  HeadOff(const HeadOff&) = delete;
  HeadOff& operator=(const HeadOff&) = delete;
  ~HeadOff() { columns_.copy_(kept_); }

 private:
  Tensor columns_, kept_;
};

std::string projection_name(int64_t layer) { return layer_name(layer, "attention.wo.weight"); }

double& factor(nn::CompositionScale::Stage& stage, MixingTerm term) {
  using Stage = nn::CompositionScale::Stage;
  constexpr double Stage::*factors[] = {&Stage::base, &Stage::query, &Stage::key, &Stage::query_gate, &Stage::key_gate};
  return stage.*factors[static_cast<size_t>(term)];
}

std::vector<nn::CompositionScale> factors_of(const Ablation& ablation, int64_t layers) {
  nn::CompositionScale off;
  for (const auto& [stage, part] : {std::pair{&off.pre, ablation.pre}, {&off.post, ablation.post}})
    for (const MixingTerm term : kMixingTerms)
      if (part && (!ablation.term || *ablation.term == term)) factor(*stage, term) = 0;
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

int64_t output_heads(const LanguageModel& model, int64_t layer) {
  const Tensor projection = parameter_named(model, projection_name(layer));
  return projection ? projection.dim(1) / head_dim_of(model) : 0;
}

std::vector<double> losses_without(LanguageModel& model, const Ablation& ablation, int64_t layers,
                                   std::span<const int32_t> tokens) {
  const NoGrad off;
  const Tensor ids = token_ids(model, tokens);
  if (!ablation.head) return token_losses(model, scaled_hidden(model, ids, factors_of(ablation, layers)), tokens);
  check(ablation.layer.has_value(), "ablation", "a head is one of a layer");
  const Tensor projection = parameter_named(model, projection_name(*ablation.layer));
  check(bool(projection), "ablation", [&] { return "the model has no parameter " + projection_name(*ablation.layer); });
  const HeadOff without(projection, *ablation.head, head_dim_of(model));
  return token_losses(model, model.hidden(ids), tokens);
}

}  // namespace braid::models
