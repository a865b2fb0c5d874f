// A step of Trainer under StrictBits (tensor/strict.h): each sample by itself, their gradients as one tree over the
// positions of the samples in the step, loss and norm without an order of their sums. The samples of a data rank are
// consecutive, over all its micro-batches, and come before those of the next rank.
//
// A sample is computed by one rank, with whole parameters (whole_parameters.h). Context ranks have consecutive samples
// of their data rank, tensor ranks take those of a context rank in turn, one each per round, since they exchange
// gradients after it; where the last round has fewer samples, the other ranks repeat the last one:
//
//   data rank with samples 0 to 6      context rank 0, round 0    0 1      context rank 1, round 0    4 5
//   2 context x 2 tensor ranks                         round 1    2 3                      round 1    6 (6)
#pragma once
#include <vector>

#include "braid/models/training/trainer.h"

namespace braid::models {

struct StrictShare {
  std::vector<Batch> batches = {};        // this rank's, one for each round
  std::vector<dist::Range> samples = {};  // of the step, of each context rank of each data rank
  dist::Range own = {};                   // those of this context rank
  size_t counted = 0;                     // so many of the batches are no repetition
};
// batches: the samples of this data rank. Collective.
StrictShare strict_share(const std::vector<Batch>& batches, const Objective& objective, const dist::ProcessMesh& mesh);
// Drops what was computed of the repeated samples.
void drop_repeated(StrictShare& share, StepSums& sums);
// Error(setting) where parameters cannot be gathered: LoRA of parts of a weight.
void check_strict_shards(const std::vector<nn::NamedTensor>& parameters);
// Loss and gradient norm of a step that is finite.
void make_exact(StepMetrics& metrics, const StepSums& sums, double loss_scale,
                const std::vector<nn::NamedTensor>& pieces, const dist::ProcessMesh& mesh);

}  // namespace braid::models
