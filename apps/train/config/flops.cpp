#include "apps/train/config/flops.h"

#include <algorithm>

#include "apps/train/config/trained.h"
#include "braid/models/training/preferences.h"

namespace braid::apps {

models::Batch typical_batch(const models::ModelSpec& model, const models::text::Dataset& data) {
  constexpr int64_t kSamples = 32;
  const int64_t n = std::min(kSamples, data.size()), T = data.seq_len();
  if (!data.separates_documents() || n == 0) return models::blank_batch(model, 1, T);
  Tensor positions = zeros({n, T}, DType::i32);
  for (int64_t i = 0; i < n; ++i)
    std::ranges::copy(data.sequence(i * data.size() / n).positions, positions.mutable_data<int32_t>() + i * T);
  const models::Batch blank = models::blank_batch(model, n, T);
  return models::text_batch(blank.at("input_ids"), blank.at("targets"), positions);
}

SampleFlops sample_flops(const TrainConfig& config, const models::ModelSpec& model, const models::Batch& batch,
                         int64_t updates) {
  models::TrainingSetup setup;
  if (config.lora.rank > 0) setup.lora = lora_options(config);
  setup.optimizer.groups = parameter_groups(config);
  for (nn::ParameterGroup& group : setup.optimizer.groups) {
    if (group.frozen_until) group.frozen_until = *group.frozen_until > updates ? nn::kNeverTrained : 0;
    group.elementwise.reset();  // the update counts for no sample: any rule does
  }
  const bool pairs = batch.has(models::kReferenceLosses);
  if (pairs) setup.objective = std::make_shared<models::PreferenceObjective>(models::PreferenceOptions());
  const auto samples = static_cast<double>(pairs ? batch.samples() / 2 : batch.samples());
  SampleFlops flops{.forward = models::forward_flops(model, batch, setup).total() / samples};
  flops.backward = models::training_flops(model, batch, setup).total() / samples - flops.forward;
  return flops;
}

}  // namespace braid::apps
