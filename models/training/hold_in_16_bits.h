// Weights of 16 bits without f32 masters (mixed_precision.md).
#pragma once
#include "braid/models/model.h"

namespace braid::models {

// Rounds the parameters to bf16, but for those that the model keeps in f32: for a trainer that computes in bf16, before
// it is made, and Trainer::round_stochastically().
void hold_in_16_bits(Model& model);

}  // namespace braid::models
