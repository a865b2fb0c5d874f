#include "braid/nn/optim/sgd.h"

#include "braid/tensor/kernels/backend.h"

namespace braid::nn {

std::vector<std::string> Sgd::state_suffixes(const OptimizerOptions& options) {
  return options.momentum > 0 ? std::vector<std::string>{".momentum"} : std::vector<std::string>{};
}

Sgd::Sgd(std::vector<NamedTensor> parameters, const OptimizerOptions& options)
    : Optimizer(std::move(parameters), options, state_suffixes(options)) {
  check_setting(options.momentum >= 0 && options.momentum < 1, "momentum", options.momentum, "at least 0 and below 1");
}

void Sgd::update(const std::vector<Item>& items, const Tensor& scalars) {
  SgdStep step{{}, options().momentum, scalars};
  for (const Item& i : items)
    step.items.push_back({i.parameter, i.gradient, i.state.empty() ? Tensor() : i.state[0], i.weight_decay});
  backend(scalars.device()).optimizer.sgd(step);
}

}  // namespace braid::nn
