// The loss of each source of a step (Trainer::separate_sources), from the step's own forward pass.
#pragma once
#include "braid/models/model.h"

namespace braid::models {

// model.loss_sum(batch). sample_losses: (B) f64, gets the part of each sample, NaN where the model's loss is no sum of
// autograd/detail/token_losses.h; or (0).
Tensor loss_and_samples(const Model& model, const Batch& batch, Tensor sample_losses);

}  // namespace braid::models
