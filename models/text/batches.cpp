#include "braid/models/text/batches.h"

#include <algorithm>

namespace braid::models::text {

Batch read_batch(const Dataset& data, const std::vector<int64_t>& indices) {
  const auto B = static_cast<int64_t>(indices.size());
  const int64_t T = data.seq_len();
  Sequence all;
  const auto append = [](std::vector<int32_t>& to, const std::vector<int32_t>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (int64_t i : indices) {
    const Sequence one = data.sequence(i);
    append(all.ids, one.ids), append(all.targets, one.targets), append(all.positions, one.positions);
  }
  return text_batch(from_vector(all.ids, {B, T}), from_vector(all.targets, {B, T}),
                    data.separates_documents() ? from_vector(all.positions, {B, T}) : Tensor());
}

namespace {
// The samples of a micro-batch that this data rank computes.
std::vector<int64_t> local_samples(const std::vector<int64_t>& all, const dist::ProcessMesh& mesh) {
  const dist::Partition samples = dist::even_partition(static_cast<int64_t>(all.size()), mesh.data.size());
  const dist::Range mine = samples.single(mesh.data.rank());
  return {all.begin() + mine.begin, all.begin() + mine.end};
}
}  // namespace

std::vector<Batch> step_batches(const Dataset& data, const Sampler& sampler, int64_t first, int64_t batch_size,
                                int64_t count, const dist::ProcessMesh& mesh) {
  std::vector<Batch> batches;
  for (int64_t m = 0; m < count; ++m) {
    std::vector<int64_t> indices;
    for (int64_t b = 0; b < batch_size; ++b) indices.push_back(sampler.at(first++));
    batches.push_back(read_batch(data, local_samples(indices, mesh)));
  }
  return batches;
}

std::vector<Batch> validation_batches(const Dataset& data, int64_t batch_size, int64_t count,
                                      const dist::ProcessMesh& mesh) {
  std::vector<Batch> batches;
  const int64_t samples = std::min(data.size(), count * batch_size);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < samples; ++i) {
    indices.push_back(i * data.size() / samples);
    if (static_cast<int64_t>(indices.size()) == batch_size || i + 1 == samples) {
      batches.push_back(read_batch(data, local_samples(indices, mesh)));
      indices.clear();
    }
  }
  return batches;
}

}  // namespace braid::models::text
