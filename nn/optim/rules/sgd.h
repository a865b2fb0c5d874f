// Stochastic gradient descent, with momentum where the option is not 0.
#pragma once
#include "braid/nn/optim/optimizer.h"

namespace braid::nn {

// With g = grad_scale * gradient:   g += weight_decay p,   u = momentum u + g,   p -= lr u
// State: u as ".momentum"; none without momentum. Options: lr, momentum in [0, 1), weight_decay, decay.
class Sgd final : public Optimizer {
 public:
  Sgd(std::vector<NamedTensor> parameters, const OptimizerOptions& options);
  static std::vector<std::string> state_suffixes(const OptimizerOptions& options);

 private:
  void update(const std::vector<Item>& items, const Tensor& scalars) override;
};

}  // namespace braid::nn
