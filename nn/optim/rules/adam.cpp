#include "braid/nn/optim/rules/adam.h"

#include "braid/nn/optim/registry.h"

namespace braid::nn {

OptimizerRule adam_rule() { return optimizer_rule<Adam>("adam"); }

}  // namespace braid::nn
