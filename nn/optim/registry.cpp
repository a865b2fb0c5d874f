#include "braid/nn/optim/registry.h"

#include <algorithm>

#include "braid/nn/rule_list.h"

namespace braid::nn {

namespace {

// The default first, then the others in the order of their names, then those registered.
RuleList<OptimizerRule>& rules() {
  static RuleList<OptimizerRule> list("optimizers", [] {
    std::vector<OptimizerRule> built_in = detail::built_in_optimizers();
    std::stable_partition(built_in.begin(), built_in.end(),
                          [](const OptimizerRule& rule) { return rule.name == OptimizerOptions().name; });
    return built_in;
  }());
  return list;
}

const OptimizerRule& rule_named(const std::string& name) {
  if (const OptimizerRule* rule = rules().find(name)) return *rule;
  const std::vector<std::string> names = optimizer_names();
  std::string choices;  // "a, b or c"
  for (size_t i = 0; i < names.size(); ++i) choices += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i];
  fail(ErrorKind::setting, "unknown optimizer '" + name + "': expected " + choices);
}

}  // namespace

void register_optimizer(const OptimizerRule& rule) { rules().add(rule); }

std::vector<std::string> optimizer_names() { return rules().names(); }

std::unique_ptr<Optimizer> make_optimizer(std::vector<NamedTensor> parameters, const OptimizerOptions& options) {
  return rule_named(options.name).make(std::move(parameters), options);
}

std::vector<std::string> state_suffixes(const OptimizerOptions& options) {
  return rule_named(options.name).state_suffixes(options);
}

std::vector<std::string> state_suffixes(const OptimizerOptions& options, const NamedTensor& parameter) {
  const OptimizerRule& rule = rule_named(options.name);
  return takes_as_matrix(options, parameter) ? rule.matrix_suffixes(options) : rule.state_suffixes(options);
}

bool takes_matrices(const OptimizerOptions& options) { return rule_named(options.name).matrix_suffixes != nullptr; }

bool takes_as_matrix(const OptimizerOptions& options, const NamedTensor& parameter) {
  return takes_matrices(options) && is_matrix(options.groups, parameter);
}

}  // namespace braid::nn
