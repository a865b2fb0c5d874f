// AdamW (Loshchilov and Hutter 2019): Adam with decoupled weight decay.
#pragma once
#include "braid/nn/optim/optimizer.h"

namespace braid::nn {

// With g = grad_scale * gradient and t the number of the update from 1:
//   m = beta1 m + (1 - beta1) g,   v = beta2 v + (1 - beta2) g^2
//   p -= lr (m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay p)
// State: m as ".first", v as ".second". Options: lr, beta1, beta2 in [0, 1), eps 0 or
// at least the smallest normal value of the type of the update, weight_decay, decay.
class AdamW : public Optimizer {
 public:
  AdamW(std::vector<NamedTensor> parameters, const OptimizerOptions& options);
  static std::vector<std::string> state_suffixes(const OptimizerOptions&) { return {".first", ".second"}; }

 protected:
  AdamW(std::vector<NamedTensor> parameters, const OptimizerOptions& options, bool coupled_decay,
        const std::optional<std::vector<std::string>>& matrix_suffixes = {});
  void update(const std::vector<Item>& items, const Tensor& scalars) override;
  std::array<double, 2> bias_corrections(int64_t t) const override;  // 1 / (1 - beta1^t), 1 / (1 - beta2^t)

 private:
  bool coupled_decay_;  // Adam's: the decay is part of the gradient
};

}  // namespace braid::nn
