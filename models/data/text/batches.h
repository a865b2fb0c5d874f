// Batches of the sequences of a data set or of several: input_ids (B, T), the next token of each as target, for
// separate documents positions and, of several sources, the number of each.
#pragma once
#include <optional>
#include <vector>

#include "braid/distributed/comm/process_mesh.h"
#include "braid/models/batch.h"
#include "braid/models/data/text/mixed_order.h"

namespace braid::models::text {

// The sequences `indices` of a data set: B = indices.size(), T = data.seq_len().
Batch read_batch(const Dataset& data, const std::vector<int64_t>& indices);

// The micro-batches of one step, `count` of `batch_size` samples each, from sequence `first` of the run on. Returns
// this data rank's share of each; the micro-batches do not depend on the number of ranks. dropout: the key of the run's
// sample_keys(); none: without them. Of several sources the batches have kSources; where one of them separates
// documents, all have positions, which count the whole sequence where documents are joined.
std::vector<Batch> step_batches(const MixedOrder& order, int64_t first, int64_t batch_size, int64_t count,
                                const dist::ProcessMesh& mesh, std::optional<RandomKey> dropout = {});

// At most `max_samples` windows (0: all), spread evenly over the data set: the same at every validation and batch size.
// Returns this data rank's share of each batch; may be empty.
std::vector<Batch> validation_batches(const Dataset& data, int64_t batch_size, int64_t max_samples,
                                      const dist::ProcessMesh& mesh);

}  // namespace braid::models::text
