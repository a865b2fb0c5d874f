// FLOPs of training by what is trained, and by the documents that attention is computed in.
#pragma once
#include "apps/train/config/train_config.h"
#include "braid/models/data/text/dataset.h"
#include "braid/models/model_spec.h"
#include "braid/nn/optim/groups.h"

namespace braid::apps {

// FLOPs of the forward pass of one sample of the data. Separate documents are sequences of their own for attention. The
// mean over samples spread evenly over the data.
double forward_flops(const models::ModelSpec& model, const models::text::Dataset& data);

// FLOPs of one sample, LoRA's included; nothing is recomputed.
struct SampleFlops {
  double forward = 0, backward = 0;
  double training() const { return forward + backward; }
};
// `forward`: of the model without LoRA, 0: forward_flops(seq_len). In the backward pass every product has two more, the
// gradient of its input and that of its weight; the latter is left out for weights that are frozen after `updates`
// updates, by default those that are never trained. Below the first layer with a trained weight the former is left out
// too, which is not taken into account.
SampleFlops sample_flops(const TrainConfig& config, const models::ModelSpec& model, int64_t seq_len, double forward = 0,
                         int64_t updates = nn::kNeverTrained - 1);

}  // namespace braid::apps
