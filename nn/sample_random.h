// Dropout and stochastic depth as pure functions of a key per sample: a sample loses the same elements in any batch, on
// any rank and device, and in a resumed run.
#pragma once
#include <memory>
#include <vector>

#include "braid/tensor/random.h"
#include "braid/tensor/tensor.h"

namespace braid::nn {

class SampleRandom {
 public:
  SampleRandom() = default;  // nothing is omitted: evaluation
  explicit SampleRandom(std::vector<RandomKey> keys) : keys_(std::move(keys)) {}
  // For tensors (B, rows, ...) of these rows of each sample alone, which lose what they lose among all rows.
  SampleRandom of_rows(std::vector<int64_t> rows) const;

  // The keys of a part of the model, independent of those of other parts.
  SampleRandom child(uint64_t index) const;
  SampleRandom child(const char* name) const;

  // x (B, ...) or the rows (B, rows, ...) with every element zero with probability p, else x / (1-p).
  Tensor dropout(const Tensor& x, double p) const;
  // Stochastic depth (Huang et al. 2016): the same for all elements of a sample together.
  Tensor drop_path(const Tensor& x, double p) const;

 private:
  // x times 0 or 1 / (1-p), chosen for each of `parts` parts of a row.
  Tensor omitted(const Tensor& x, double p, const std::vector<int64_t>& rows, int64_t parts) const;

  std::vector<RandomKey> keys_;                       // of the samples
  std::shared_ptr<const std::vector<int64_t>> rows_;  // null: all, as one
};

}  // namespace braid::nn
