#include "braid/models/data/text/batches.h"

#include "braid/models/data/local_samples.h"

namespace braid::models::text {

namespace {
Batch batch_of(const std::vector<Sequence>& sequences, int64_t T, bool separate) {
  const auto B = std::ssize(sequences);
  Sequence all;
  const auto append = [](std::vector<int32_t>& to, const std::vector<int32_t>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (const Sequence& one : sequences)
    append(all.ids, one.ids), append(all.targets, one.targets), append(all.positions, one.positions);
  return text_batch(from_vector(all.ids, {B, T}), from_vector(all.targets, {B, T}),
                    separate ? from_vector(all.positions, {B, T}) : Tensor());
}
}  // namespace

Batch read_batch(const Dataset& data, const std::vector<int64_t>& indices) {
  std::vector<Sequence> sequences;
  for (const int64_t i : indices) sequences.push_back(data.sequence(i));
  return batch_of(sequences, data.seq_len(), data.separates_documents());
}

std::vector<Batch> step_batches(const TrainingOrder& order, int64_t first, int64_t batch_size, int64_t count,
                                const dist::ProcessMesh& mesh, std::optional<RandomKey> dropout) {
  std::vector<Batch> batches;
  for (const std::vector<int64_t>& positions : step_positions(first, batch_size, count, mesh)) {
    std::vector<Sequence> sequences;
    for (const int64_t position : positions) {
      const auto [data, index] = order.at(position);
      sequences.push_back(data->sequence(index));
    }
    batches.push_back(batch_of(sequences, order.data().seq_len(), order.data().separates_documents()));
    if (dropout) batches.back().add({kSampleKeys, sample_keys(*dropout, positions)});
  }
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
