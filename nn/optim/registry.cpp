#include "braid/nn/optim/registry.h"

#include <algorithm>

namespace braid::nn {

namespace {

// The default first, then the others in the order of their names, then those registered.
std::vector<OptimizerRule>& rules() {
  static std::vector<OptimizerRule> all = [] {
    std::vector<OptimizerRule> built_in = detail::built_in_optimizers();
    std::stable_partition(built_in.begin(), built_in.end(),
                          [](const OptimizerRule& rule) { return rule.name == OptimizerOptions().name; });
    return built_in;
  }();
  return all;
}

const OptimizerRule& rule_named(const std::string& name) {
  for (const OptimizerRule& rule : rules()) {
    if (rule.name == name) return rule;
  }
  const std::vector<std::string> names = optimizer_names();
  std::string choices;  // "a, b or c"
  for (size_t i = 0; i < names.size(); ++i) choices += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i];
  fail(ErrorKind::setting, "unknown optimizer '" + name + "': expected " + choices);
}

}  // namespace

void register_optimizer(const OptimizerRule& rule) {
  for (const OptimizerRule& other : rules())
    check(other.name != rule.name, ErrorKind::setting, [&] { return "two optimizers are called " + rule.name; });
  rules().push_back(rule);
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerRule& rule : rules()) names.push_back(rule.name);
  return names;
}

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
