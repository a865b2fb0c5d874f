#include "braid/nn/optim/rules/sgd.h"

#include "braid/nn/optim/registry.h"
#include "braid/tensor/kernels/update_rules.h"

namespace braid::nn {

std::vector<std::string> Sgd::state_suffixes(const OptimizerOptions& options) {
  return options.momentum > 0 ? std::vector<std::string>{".momentum"} : std::vector<std::string>{};
}

Sgd::Sgd(std::vector<NamedTensor> parameters, const OptimizerOptions& options)
    : Optimizer(std::move(parameters), options, state_suffixes(options)) {
  check_setting(options.momentum >= 0 && options.momentum < 1, "momentum", options.momentum, "at least 0 and below 1");
}

void Sgd::update(const std::vector<Item>& items, const Tensor& scalars) {
  const UpdateRule rule = options().momentum > 0 ? UpdateRule::momentum : UpdateRule::sgd;
  fused_update(rule, {options().momentum}, items, scalars);
}

OptimizerRule sgd_rule() { return optimizer_rule<Sgd>("sgd"); }

}  // namespace braid::nn
