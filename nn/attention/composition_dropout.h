// Dropout of the dynamic weights of Compose while a model trains.
#pragma once
#include "braid/nn/sample_random.h"

namespace braid::nn {

// While one lives, the layers that this thread computes leave out elements of the factors that write heads and of the
// gates, with probability p. `random` must outlive it; with an empty one or p = 0 nothing changes.
class [[nodiscard]] CompositionDropoutScope {
 public:
  CompositionDropoutScope(const SampleRandom& random, double p);
  ~CompositionDropoutScope();
  CompositionDropoutScope(const CompositionDropoutScope&) = delete;
  CompositionDropoutScope& operator=(const CompositionDropoutScope&) = delete;

  // x (B, ...), a weight of this branch.
  Tensor operator()(const Tensor& x, const std::string& branch, const char* weight) const {
    return x ? random_.child(branch.c_str()).child(weight).dropout(x, p_) : x;
  }

 private:
  const SampleRandom& random_;
  double p_;
  CompositionDropoutScope* outer_;
};

}  // namespace braid::nn
