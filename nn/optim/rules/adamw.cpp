#include "braid/nn/optim/rules/adamw.h"

#include <cmath>

#include "braid/nn/optim/registry.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/kernels/update_rules.h"

namespace braid::nn {

AdamW::AdamW(std::vector<NamedTensor> parameters, const OptimizerOptions& options)
    : AdamW(std::move(parameters), options, false) {}

AdamW::AdamW(std::vector<NamedTensor> parameters, const OptimizerOptions& options, bool coupled_decay,
             const std::optional<std::vector<std::string>>& matrix_suffixes)
    : Optimizer(std::move(parameters), options, state_suffixes(options), matrix_suffixes),
      coupled_decay_(coupled_decay) {
  check_setting(options.beta1 >= 0 && options.beta1 < 1, "beta1", options.beta1, "at least 0 and below 1");
  check_setting(options.beta2 >= 0 && options.beta2 < 1, "beta2", options.beta2, "at least 0 and below 1");
  const std::string range =
      "0 or at least " + braid::detail::shortest(smallest()) + ", which the type of the update holds";
  check_setting(options.eps == 0 || options.eps >= smallest(), "eps", options.eps, range.c_str());
}

std::array<double, 2> AdamW::bias_corrections(int64_t t) const {
  const auto correction = [t](double beta) { return 1 / (1 - std::pow(beta, static_cast<double>(t))); };
  return {correction(options().beta1), correction(options().beta2)};
}

void AdamW::update(const std::vector<Item>& items, const Tensor& scalars) {
  const double coupled = coupled_decay_ ? 1 : 0;
  fused_update(UpdateRule::adamw, {options().beta1, options().beta2, options().eps, coupled}, items, scalars);
}

OptimizerRule adamw_rule() { return optimizer_rule<AdamW>("adamw"); }

}  // namespace braid::nn
