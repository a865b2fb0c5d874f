// The derivative of a whole model's loss.
#pragma once
#include <vector>

#include "braid/autograd.h"
#include "braid/nn/module.h"

namespace braid::test {

// Compares the derivatives of loss(inputs) by the inputs and by every parameter of the model with finite differences.
// `loss` runs this model, whose parameters are replaced for each call.
template <class Model, class Loss>
GradcheckResult gradcheck_model(Model& model, const Loss& loss, std::vector<Tensor> inputs = {}) {
  const size_t given = inputs.size();
  for (const nn::NamedTensor& p : nn::parameters(model)) inputs.push_back(p.value.detach().clone());
  return gradcheck(
      [&](const std::vector<Tensor>& in) {
        size_t next = given;
        nn::replace_parameters(model, [&](const std::string&, const Tensor&) { return in[next++]; });
        return loss(in);
      },
      inputs);
}

}  // namespace braid::test
