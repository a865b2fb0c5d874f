#include "braid/models/training/preferences.h"

#include <algorithm>
#include <cmath>

#include "braid/autograd/composed.h"
#include "braid/autograd/detail/token_losses.h"
#include "braid/autograd/losses.h"
#include "braid/autograd/recompute.h"
#include "braid/autograd/reductions.h"
#include "braid/models/exact_sum.h"
#include "braid/models/model_spec.h"

namespace braid::models {

namespace {

constexpr double PreferenceValues::*kValues[] = {&PreferenceValues::pairs,
                                                 &PreferenceValues::loss,
                                                 &PreferenceValues::preferred,
                                                 &PreferenceValues::chosen_reward,
                                                 &PreferenceValues::rejected_reward,
                                                 &PreferenceValues::chosen_log_probability,
                                                 &PreferenceValues::rejected_log_probability};

// log(1 + exp(x)) = -log sigmoid(-x)
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

const LanguageModel& language_model(const Model& model) {
  const auto* language = dynamic_cast<const LanguageModel*>(&model);
  check(language != nullptr, ErrorKind::input, [&] {
    return "a model of type " + model.spec()->model_type() + " does not model text: preferences need a language model";
  });
  return *language;
}

}  // namespace

Tensor sequence_losses(const LanguageModel& model, const Tensor& input_ids, const Tensor& targets) {
  const Tensor hidden = model.hidden(input_ids);  // (B, T, D)
  std::vector<Tensor> losses;
  for (int64_t i = 0; i < hidden.dim(0); ++i) {
    const Segment of_one = [&model, own = targets.sliced(0, i, i + 1)](const std::vector<Tensor>& in) {
      return reshape(model.loss_of_hidden(in[0], own), {1});
    };
    losses.push_back(recompute(of_one, {slice(hidden, 0, i, i + 1)}, SegmentCost::once));
  }
  return concat(losses, 0);
}

Tensor preference_loss(const Tensor& losses, const Tensor& reference, const Tensor& tokens,
                       const PreferenceOptions& options) {
  const int64_t P = losses.numel() / 2;
  const auto chosen = [&](const Tensor& x) { return select(reshape(x, {P, 2}), 1, 0); };
  const auto rejected = [&](const Tensor& x) { return select(reshape(x, {P, 2}), 1, 1); };
  Tensor r = sub(reference, losses);
  if (options.length_normalised) r = div(r, tokens);
  const Tensor z = scale(sub(chosen(r), rejected(r)), options.beta);
  const Tensor right = full({P}, 1 - options.label_smoothing, z.dtype(), z.device());
  Tensor loss = bce_with_logits_loss(z, right, {.reduction = Reduction::sum});
  if (options.sft_weight == 0) return loss;
  return add(loss, scale(sum(div(chosen(losses), chosen(tokens))), options.sft_weight));
}

Tensor PreferenceObjective::loss_sum(const Model& model, const Batch& batch) const {
  const Tensor targets = batch.at("targets");
  const Tensor losses = sequence_losses(language_model(model), batch.at("input_ids"), targets);
  TokenLosses::keep(losses.detach());
  const Tensor tokens = sum(cast(ge(targets, 0.0), losses.dtype()), 1);
  return preference_loss(losses, cast(batch.at(kReferenceLosses), losses.dtype()), tokens, options_);
}

void PreferenceObjective::check_batch(const Model& model, const Batch& batch) const {
  model.check_batch(batch);
  const Tensor reference = batch.at(kReferenceLosses);
  check(batch.samples() % 2 == 0 && reference.shape() == Shape{batch.samples()} && reference.dtype() == DType::f64,
        ErrorKind::input, [&] {
          return str("a batch of preferences needs pairs of sequences with a reference loss each, f64: expected (",
                     batch.samples() + batch.samples() % 2, "), found ", reference.dtype(), " ", reference.shape());
        });
}

Batch PreferenceObjective::blank_batch(const Model& model, int64_t samples, int64_t seq_len) const {
  Batch batch = model.blank_batch(2 * samples, seq_len);
  batch.add({kReferenceLosses, zeros({2 * samples}, DType::f64)});
  return batch;
}

void PreferenceSums::add(const Batch& batch, std::span<const double> losses, const PreferenceOptions& options) {
  const std::vector<double> reference = batch.at(kReferenceLosses).to_vector<double>();
  const std::vector<int64_t> targets = batch.at("targets").to_vector<int64_t>();
  const size_t T = targets.size() / reference.size();
  const auto tokens = [&](size_t i) {
    const auto first = targets.begin() + static_cast<std::ptrdiff_t>(i * T);
    return static_cast<double>(
        std::count_if(first, first + static_cast<std::ptrdiff_t>(T), [](int64_t t) { return t >= 0; }));
  };
  const auto reward = [&](size_t i) {
    return options.beta * (reference[i] - losses[i]) / (options.length_normalised ? tokens(i) : 1);
  };
  for (size_t i = 0; i + 1 < reference.size(); i += 2) {
    const double of_chosen = reward(i), of_rejected = reward(i + 1), z = of_chosen - of_rejected;
    PreferenceValues pair{.pairs = 1,
                          .loss = (1 - options.label_smoothing) * softplus(-z) + options.label_smoothing * softplus(z),
                          .preferred = z > 0    ? 1
                                       : z == 0 ? 0.5
                                                : 0,
                          .chosen_reward = of_chosen,
                          .rejected_reward = of_rejected,
                          .chosen_log_probability = -losses[i],
                          .rejected_log_probability = -losses[i + 1]};
    if (options.sft_weight > 0) pair.loss += options.sft_weight * losses[i] / tokens(i);
    pairs_.push_back(pair);
  }
}

PreferenceValues PreferenceSums::over(const dist::Communicator& ranks) const {
  PreferenceValues sums;
  for (const auto value : kValues) {
    std::vector<double> terms;
    for (const PreferenceValues& pair : pairs_) terms.push_back(pair.*value);
    sums.*value = sum_of(terms, ranks);
  }
  return sums;
}

}  // namespace braid::models
