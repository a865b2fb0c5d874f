// The loss of a step as it is reported, also of each source (Trainer::separate_sources), from its own forward pass.
#pragma once
#include "braid/models/model.h"

namespace braid::models {

// model.loss_sum(batch). reported: (1) f64, gets it without its z-loss. sample_losses: (B) f64, gets the part of each
// sample in that, NaN where the model's loss is no sum of autograd/detail/token_losses.h; or (0).
Tensor loss_and_samples(const Model& model, const Batch& batch, Tensor reported, Tensor sample_losses);

}  // namespace braid::models
