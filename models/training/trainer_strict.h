// A step of Trainer under StrictBits (tensor/strict.h): each sample by itself, their gradients as one tree over the
// positions of the samples in the step, loss and norm without an order of their sums. The samples of a data rank are
// consecutive, over all its micro-batches, and come before those of the next rank.
#pragma once
#include <vector>

#include "braid/models/training/trainer.h"

namespace braid::models {

void check_strict_mesh(const dist::ProcessMesh& mesh);  // Error(setting) where ranks share a sample
std::vector<Batch> sample_by_sample(const std::vector<Batch>& batches);
// Loss and gradient norm of a step that is finite.
void make_exact(StepMetrics& metrics, const StepSums& sums, double loss_scale,
                const std::vector<nn::NamedTensor>& pieces, const dist::ProcessMesh& mesh);

}  // namespace braid::models
