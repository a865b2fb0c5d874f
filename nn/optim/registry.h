// The optimizers by name, as the setting optimizer.name gives it. Each rules/<name>.cpp defines
// OptimizerRule <name>_rule(); the build makes the list of them from the files.
#pragma once
#include <memory>

#include "braid/nn/optim/optimizer.h"

namespace braid::nn {

struct OptimizerRule {
  std::string name;
  std::vector<std::string> (*state_suffixes)(const OptimizerOptions& options);
  std::unique_ptr<Optimizer> (*make)(std::vector<NamedTensor> parameters, const OptimizerOptions& options);
  // The suffixes of matrices, for a rule that updates them as wholes; null: it updates all parameters by elements.
  std::vector<std::string> (*matrix_suffixes)(const OptimizerOptions& options) = nullptr;
};

// The row of a class with a constructor (parameters, options), a static state_suffixes(options) and, if it updates
// whole matrices, a static matrix_suffixes(options).
template <class Rule>
OptimizerRule optimizer_rule(const std::string& name) {
  OptimizerRule rule{
      name, &Rule::state_suffixes,
      [](std::vector<NamedTensor> parameters, const OptimizerOptions& options) -> std::unique_ptr<Optimizer> {
        return std::make_unique<Rule>(std::move(parameters), options);
      }};
  if constexpr (requires { &Rule::matrix_suffixes; }) rule.matrix_suffixes = &Rule::matrix_suffixes;
  return rule;
}

namespace detail {
std::vector<OptimizerRule> built_in_optimizers();  // made by cmake/braid-rules.cmake, in the order of the names
}

// Adds a rule of the program's own; throws Error(setting) when the name is taken. Not thread-safe.
void register_optimizer(const OptimizerRule& rule);
std::vector<std::string> optimizer_names();  // "adamw", the default; the others; then those registered

// By options.name. An unknown name throws Error(setting) with the choices.
std::unique_ptr<Optimizer> make_optimizer(std::vector<NamedTensor> parameters, const OptimizerOptions& options);
// The suffixes of the names of the state: {".first", ".second"} (adamw, adam), {".momentum"} or {} (sgd). Of a rule
// that updates whole matrices: those of all other parameters.
std::vector<std::string> state_suffixes(const OptimizerOptions& options);
// The suffixes for one parameter, of which name and rank count.
std::vector<std::string> state_suffixes(const OptimizerOptions& options, const NamedTensor& parameter);
// Whether the rule updates whole matrices, and this parameter as one.
bool takes_matrices(const OptimizerOptions& options);
bool takes_as_matrix(const OptimizerOptions& options, const NamedTensor& parameter);

}  // namespace braid::nn
