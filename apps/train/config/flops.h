// FLOPs of training by what is trained, and by the documents that attention is computed in.
#pragma once
#include "apps/train/config/train_config.h"
#include "braid/models/cost/trace.h"
#include "braid/models/data/text/dataset.h"
#include "braid/models/model_spec.h"
#include "braid/nn/optim/groups.h"

namespace braid::apps {

// Samples of the data for what they cost: blank ones, where documents are separate of the lengths of documents of
// samples spread evenly over the data.
models::Batch typical_batch(const models::ModelSpec& model, const models::text::Dataset& data);

// FLOPs of one sample, the mean over those of the batch, LoRA's included; nothing is recomputed.
struct SampleFlops {
  double forward = 0, backward = 0;
  double training() const { return forward + backward; }
};
// The backward pass leaves out what no trained weight needs after `updates` updates, by default what none ever needs.
SampleFlops sample_flops(const TrainConfig& config, const models::ModelSpec& model, const models::Batch& batch,
                         int64_t updates = nn::kNeverTrained - 1);

}  // namespace braid::apps
