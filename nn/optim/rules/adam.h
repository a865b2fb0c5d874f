// Adam (Kingma and Ba 2015) with L2 regularisation.
#pragma once
#include "braid/nn/optim/rules/adamw.h"

namespace braid::nn {

// AdamW's moments and update, but g += weight_decay p comes first, so that the moments contain the decay.
class Adam final : public AdamW {
 public:
  Adam(std::vector<NamedTensor> parameters, const OptimizerOptions& options)
      : AdamW(std::move(parameters), options, true) {}
};

}  // namespace braid::nn
