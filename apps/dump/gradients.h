// The derivative of a loss by the parameters, as `braid dump --grad` writes it.
#pragma once
#include "braid/autograd.h"
#include "braid/models/folders/folder.h"
#include "braid/models/model_spec.h"
#include "braid/tensor/io/safetensors.h"

namespace braid::apps {

// Adds grad.<name> for every tensor that folders of the family have on disk and that is not frozen. The parameters
// collect nothing.
inline void add_gradients(const models::Model& model, const Tensor& loss, io::NamedTensors& out) {
  std::vector<nn::NamedTensor> trained = nn::parameters(model);
  std::erase_if(trained, [](const nn::NamedTensor& p) { return !requires_grad(p.value); });
  std::vector<Tensor> values;
  for (const nn::NamedTensor& p : trained) values.push_back(p.value);
  const std::vector<Tensor> derivatives = grad(loss, values, {.allow_unused = true});
  const std::unique_ptr<const models::ModelSpec> spec = model.spec();
  for (size_t i = 0; i < trained.size(); ++i) {
    const Tensor derivative = derivatives[i] ? derivatives[i] : zeros_like(values[i]);
    for (const nn::NamedTensor& t :
         models::split_stored(spec->folder().stored(trained[i].name, values[i].shape()), derivative))
      out.emplace_back("grad." + t.name, t.value);
  }
}

}  // namespace braid::apps
