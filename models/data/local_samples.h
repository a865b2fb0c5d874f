// Which samples of a step or of a validation a data rank computes. The batches are the same whatever the number of
// ranks.
#pragma once
#include <cstdint>
#include <vector>

#include "braid/distributed/comm/process_mesh.h"
#include "braid/models/data/sampler.h"

namespace braid::models::text {

// Of the samples of a batch those of this data rank, which may be none.
std::vector<int64_t> local_samples(const std::vector<int64_t>& all, const dist::ProcessMesh& mesh);
// Of each of `count` micro-batches of `batch_size` samples, from place `first` of the sampler's order on.
std::vector<std::vector<int64_t>> step_samples(const Sampler& sampler, int64_t first, int64_t batch_size, int64_t count,
                                               const dist::ProcessMesh& mesh);
// Of each batch of at most `most` (0: all) of `size` samples, spread evenly: the same at every validation.
std::vector<std::vector<int64_t>> validation_samples(int64_t size, int64_t batch_size, int64_t most,
                                                     const dist::ProcessMesh& mesh);

}  // namespace braid::models::text
