#include "braid/models/data/text/batches.h"

#include "braid/models/data/local_samples.h"

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

std::vector<Batch> step_batches(const Dataset& data, const Sampler& sampler, int64_t first, int64_t batch_size,
                                int64_t count, const dist::ProcessMesh& mesh) {
  std::vector<Batch> batches;
  for (const std::vector<int64_t>& samples : step_samples(sampler, first, batch_size, count, mesh))
    batches.push_back(read_batch(data, samples));
  return batches;
}

std::vector<Batch> validation_batches(const Dataset& data, int64_t batch_size, int64_t max_samples,
                                      const dist::ProcessMesh& mesh) {
  std::vector<Batch> batches;
  for (const std::vector<int64_t>& samples : validation_samples(data.size(), batch_size, max_samples, mesh))
    batches.push_back(read_batch(data, samples));
  return batches;
}

}  // namespace braid::models::text
