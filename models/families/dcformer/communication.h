// The bytes that the ranks of a mesh send in a training step of DCFormer, and what they hold, computed from the
// configuration alone; a test holds them equal to the bytes that are counted. The formulas are explained in
// distributed/parallel/README.md.
#pragma once
#include "braid/models/cost/model_cost.h"
#include "braid/models/families/dcformer/config.h"

namespace braid::models {

// Activations, keys and statistics, which travel between tensor and context ranks; add_gradient_volume() has the rest.
StepVolume activation_volume(const DcformerConfig& config, const MeshShape& mesh, const MeshCoord& rank,
                             const StepShape& step);

// training_memory() (cost.h) of the first rank of setup.mesh.
TrainingMemory rank_memory(const DcformerConfig& config, const TrainingSetup& setup);

}  // namespace braid::models
