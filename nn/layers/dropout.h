#pragma once
#include "braid/autograd/ops.h"

namespace braid::nn {

// For layers that behave differently in training: an argument, not a state of the module.
enum class Mode : uint8_t { eval, train };

// Zeroes with probability p while training. The pattern is a function of the key (seed, step, layer), so a resumed or
// resharded run drops the same elements.
class Dropout {
 public:
  explicit Dropout(double p = 0) : p_(p) {
    check(p >= 0 && p < 1, "dropout", [&] { return "the probability must lie in [0, 1), got " + std::to_string(p); });
  }
  Tensor operator()(const Tensor& x, Mode mode, RandomKey key) const {
    return mode == Mode::train ? dropout(x, p_, key) : x;
  }

 private:
  double p_;
};

}  // namespace braid::nn
