#include "braid/models/data/local_samples.h"

#include <algorithm>

namespace braid::models::text {

std::vector<int64_t> local_samples(const std::vector<int64_t>& all, const dist::ProcessMesh& mesh) {
  const dist::Range mine = dist::even_partition(std::ssize(all), mesh.data.size()).single(mesh.data.rank());
  return {all.begin() + mine.begin, all.begin() + mine.end};
}

std::vector<std::vector<int64_t>> step_samples(const Sampler& sampler, int64_t first, int64_t batch_size, int64_t count,
                                               const dist::ProcessMesh& mesh) {
  std::vector<std::vector<int64_t>> batches;
  for (int64_t m = 0; m < count; ++m) {
    std::vector<int64_t> all;
    for (int64_t b = 0; b < batch_size; ++b) all.push_back(sampler.at(first++));
    batches.push_back(local_samples(all, mesh));
  }
  return batches;
}

std::vector<std::vector<int64_t>> validation_samples(int64_t size, int64_t batch_size, int64_t max_samples,
                                                     const dist::ProcessMesh& mesh) {
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

}  // namespace braid::models::text
