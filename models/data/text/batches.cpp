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
  for (const Sequence& one : sequences) {
    append(all.ids, one.ids), append(all.targets, one.targets), append(all.positions, one.positions);
    for (int32_t t = 0; separate && one.positions.empty() && t < T; ++t) all.positions.push_back(t);
  }
  return text_batch(from_vector(all.ids, {B, T}), from_vector(all.targets, {B, T}),
                    separate ? from_vector(all.positions, {B, T}) : Tensor());
}
}  // namespace

Batch read_batch(const Dataset& data, const std::vector<int64_t>& indices) {
  std::vector<Sequence> sequences;
  for (const int64_t i : indices) sequences.push_back(data.sequence(i));
  return batch_of(sequences, data.seq_len(), data.separates_documents());
}

std::vector<Batch> step_batches(const MixedOrder& order, int64_t first, int64_t batch_size, int64_t count,
                                const dist::ProcessMesh& mesh, std::optional<RandomKey> dropout) {
  std::vector<Batch> batches;
  for (const std::vector<int64_t>& positions : step_positions(first, batch_size, count, mesh)) {
    std::vector<Sequence> sequences;
    std::vector<int64_t> sources;
    for (const auto& [data, index, source] : order.places(positions.empty() ? 0 : positions[0], std::ssize(positions)))
      sequences.push_back(data->sequence(index)), sources.push_back(source);
    batches.push_back(batch_of(sequences, order.seq_len(), order.separates_documents()));
    if (order.sources() > 1) batches.back().add({kSources, from_vector(sources, {std::ssize(sources)})});
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
