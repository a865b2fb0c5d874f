// Dropout and stochastic depth as pure functions of a key per sample: a sample loses the same elements in any batch, on
// any rank and device, and in a resumed run.
#pragma once
#include <vector>

#include "braid/tensor/random.h"
#include "braid/tensor/tensor.h"

namespace braid::nn {

class SampleRandom {
 public:
  SampleRandom() = default;  // nothing is omitted: evaluation
  explicit SampleRandom(std::vector<RandomKey> keys) : keys_(std::move(keys)) {}

  // The keys of a part of the model, independent of those of other parts.
  SampleRandom child(uint64_t index) const;
  SampleRandom child(const char* name) const;

  // x (B, ...) with every element zero with probability p, else x / (1-p).
  Tensor dropout(const Tensor& x, double p) const;
  // Stochastic depth (Huang et al. 2016): the same for all elements of a sample together.
  Tensor drop_path(const Tensor& x, double p) const;

 private:
  Tensor omitted(const Tensor& x, double p, int64_t elements) const;

  std::vector<RandomKey> keys_;  // of the samples
};

}  // namespace braid::nn
