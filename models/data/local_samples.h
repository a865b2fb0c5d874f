// Which samples of a step or of a validation a data rank computes. The batches are the same whatever the number of
// ranks. Under StrictBits (tensor/strict.h) a step is one batch, of which each rank has consecutive samples, and
// a validation has batches of one sample for each rank.
#pragma once
#include <cstdint>
#include <vector>

#include "braid/distributed/comm/process_mesh.h"
#include "braid/models/data/sampler.h"
#include "braid/tensor/random.h"
#include "braid/tensor/tensor.h"

namespace braid::models::text {

// This data rank's share of the batch; may be empty.
std::vector<int64_t> local_samples(const std::vector<int64_t>& all, const dist::ProcessMesh& mesh);
// This data rank's share of each of `count` micro-batches of `batch_size` positions, from `first` on.
std::vector<std::vector<int64_t>> step_positions(int64_t first, int64_t batch_size, int64_t count,
                                                 const dist::ProcessMesh& mesh);
// The samples at these positions of the sampler's order.
std::vector<std::vector<int64_t>> step_samples(const Sampler& sampler, int64_t first, int64_t batch_size, int64_t count,
                                               const dist::ProcessMesh& mesh);
// This data rank's share of each batch of at most `max_samples` (0: all) of `size` samples, spread evenly: the same at
// every validation.
std::vector<std::vector<int64_t>> validation_samples(int64_t size, int64_t batch_size, int64_t max_samples,
                                                     const dist::ProcessMesh& mesh);

// Keys of the dropout of the samples at these positions of a run (kSampleKeys): functions of the run's key and the
// position alone, so a sample loses the same elements in any batch, on any rank and in a resumed run.
Tensor sample_keys(RandomKey run, const std::vector<int64_t>& positions);

}  // namespace braid::models::text
