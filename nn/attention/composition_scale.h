// Scales the terms of Compose, or leaves out a head, while a model computes, to see what each contributes. The
// parameters stay as they are.
#pragma once
#include <cstdint>

#include "braid/tensor/tensor.h"

namespace braid::nn {

// Factors in [0, 1] of the terms: 1 keeps a term to the bit, 0 leaves it out, as the switch does in a configuration.
struct CompositionScale {
  struct Stage {
    double base = 1;                      // static mixing
    double query = 1, key = 1;            // dynamic low-rank terms
    double query_gate = 1, key_gate = 1;  // dynamic gates
    bool operator==(const Stage&) const = default;
  };
  Stage pre, post;
  int64_t without_head = -1;  // whose output does not reach the output projection; -1: none
  bool operator==(const CompositionScale&) const = default;
};

// While one lives, the layers that this thread computes have the factors set last; other threads are not affected.
class [[nodiscard]] CompositionScaleScope {
 public:
  CompositionScaleScope();  // factors of 1
  ~CompositionScaleScope();
  CompositionScaleScope(const CompositionScaleScope&) = delete;
  CompositionScaleScope& operator=(const CompositionScaleScope&) = delete;
  void set(const CompositionScale& factors) { factors_ = factors; }
  const CompositionScale& factors() const { return factors_; }

 private:
  CompositionScale factors_;
  CompositionScaleScope* outer_;
};

// y (B, T, N, d) with zeros for the head that the scope of this thread leaves out.
Tensor without_head(const Tensor& y);

}  // namespace braid::nn
