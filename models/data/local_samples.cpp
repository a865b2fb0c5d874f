#include "braid/models/data/local_samples.h"

#include <algorithm>

#include "braid/tensor/strict.h"

namespace braid::models::text {

std::vector<int64_t> local_samples(const std::vector<int64_t>& all, const dist::ProcessMesh& mesh) {
  const dist::Range mine = dist::even_partition(std::ssize(all), mesh.data.size()).single(mesh.data.rank());
  return {all.begin() + mine.begin, all.begin() + mine.end};
}

std::vector<std::vector<int64_t>> step_positions(int64_t first, int64_t batch_size, int64_t count,
                                                 const dist::ProcessMesh& mesh) {
  if (strict_bits()) batch_size *= count, count = 1;
  const dist::Range mine = dist::even_partition(batch_size, mesh.data.size()).single(mesh.data.rank());
  std::vector<std::vector<int64_t>> batches(static_cast<size_t>(count));
  for (std::vector<int64_t>& batch : batches) {
    for (int64_t b = mine.begin; b < mine.end; ++b) batch.push_back(first + b);
    first += batch_size;
  }
  return batches;
}

std::vector<std::vector<int64_t>> step_samples(const Sampler& sampler, int64_t first, int64_t batch_size, int64_t count,
                                               const dist::ProcessMesh& mesh) {
  std::vector<std::vector<int64_t>> batches = step_positions(first, batch_size, count, mesh);
  for (std::vector<int64_t>& batch : batches)
    for (int64_t& sample : batch) sample = sampler.at(sample);
  return batches;
}

std::vector<std::vector<int64_t>> validation_samples(int64_t size, int64_t batch_size, int64_t max_samples,
                                                     const dist::ProcessMesh& mesh) {
  if (strict_bits()) batch_size = mesh.data.size();
  std::vector<std::vector<int64_t>> batches;
  const int64_t samples = max_samples > 0 ? std::min(size, max_samples) : size;
  std::vector<int64_t> all;
  for (int64_t i = 0; i < samples; ++i) {
    all.push_back(i * size / samples);
    if (std::ssize(all) == batch_size || i + 1 == samples) {
      batches.push_back(local_samples(all, mesh));
      all.clear();
    }
  }
  return batches;
}

Tensor sample_keys(RandomKey run, const std::vector<int64_t>& positions) {
  std::vector<int64_t> keys;
  for (const int64_t position : positions) {
    const RandomKey key = child(run, static_cast<uint64_t>(position));
    keys.push_back(static_cast<int64_t>(uint64_t{random_bits(0, key)} << 32 | random_bits(1, key)));
  }
  return from_vector(keys, {std::ssize(keys)});
}

}  // namespace braid::models::text
