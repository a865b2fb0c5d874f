// The loss of a step as it is reported, also of each source (Trainer::separate_sources), from its own forward pass.
#pragma once
#include "braid/models/training/captured_step.h"
#include "braid/models/training/objective.h"

namespace braid::models {

// objective.loss_sum() of micro-batch i. Fills in the buffers its loss without z-loss, and the part of each sample in
// that, NaN where the model's loss is no sum of autograd/detail/token_losses.h.
Tensor loss_of(const Objective& objective, const Model& model, int64_t i, const StepBuffers& buffers);

}  // namespace braid::models
