// The cost of a Vision Transformer, by its configuration alone.
#pragma once
#include "braid/models/cost/model_cost.h"
#include "braid/models/families/vit/config.h"

namespace braid::models {

// Forward FLOPs of an image; a multiply-add is 2, elementwise work and softmax are not counted.
double vit_flops(const VitConfig& config);
// `memory`, of the parameters alone, with activations and the largest temporary.
TrainingMemory vit_training_memory(const VitConfig& config, TrainingMemory memory, const TrainingSetup& setup);

}  // namespace braid::models
