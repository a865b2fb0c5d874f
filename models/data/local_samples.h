// Which samples of a step or of a validation a data rank computes. The batches are the same whatever the number of
// ranks.
#pragma once
#include <cstdint>
#include <vector>

#include "braid/distributed/comm/process_mesh.h"
#include "braid/models/data/sampler.h"

namespace braid::models::text {

// This data rank's share of the batch; may be empty.
std::vector<int64_t> local_samples(const std::vector<int64_t>& all, const dist::ProcessMesh& mesh);
// This data rank's share of each of `count` micro-batches of `batch_size` samples, from position `first` of the
// sampler's order on.
std::vector<std::vector<int64_t>> step_samples(const Sampler& sampler, int64_t first, int64_t batch_size, int64_t count,
                                               const dist::ProcessMesh& mesh);
// This data rank's share of each batch of at most `max_samples` (0: all) of `size` samples, spread evenly: the same at
// every validation.
std::vector<std::vector<int64_t>> validation_samples(int64_t size, int64_t batch_size, int64_t max_samples,
                                                     const dist::ProcessMesh& mesh);

}  // namespace braid::models::text
