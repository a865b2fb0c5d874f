#include "braid/nn/optim/adamw.h"

#include <cmath>

#include "braid/tensor/kernels/backend.h"

namespace braid::nn {

AdamW::AdamW(std::vector<NamedTensor> parameters, const OptimizerOptions& options)
    : AdamW(std::move(parameters), options, false) {}

AdamW::AdamW(std::vector<NamedTensor> parameters, const OptimizerOptions& options, bool coupled_decay)
    : Optimizer(std::move(parameters), options, state_suffixes(options)), coupled_decay_(coupled_decay) {
  check_setting(options.beta1 >= 0 && options.beta1 < 1, "beta1", options.beta1, "at least 0 and below 1");
  check_setting(options.beta2 >= 0 && options.beta2 < 1, "beta2", options.beta2, "at least 0 and below 1");
  check_setting(options.eps >= 0, "eps", options.eps, "at least 0");
}

std::array<double, 2> AdamW::bias_corrections(int64_t t) const {
  const auto correction = [t](double beta) { return 1 / (1 - std::pow(beta, static_cast<double>(t))); };
  return {correction(options().beta1), correction(options().beta2)};
}

void AdamW::update(const std::vector<Item>& items, const Tensor& scalars) {
  AdamWStep step{{}, options().beta1, options().beta2, options().eps, coupled_decay_, scalars};
  for (const Item& i : items) step.items.push_back({i.parameter, i.gradient, i.state[0], i.state[1], i.weight_decay});
  backend(scalars.device()).optimizer.adamw(step);
}

}  // namespace braid::nn
