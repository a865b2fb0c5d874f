// The derivative of a loss by the parameters, as `braid dump --grad` writes it.
#pragma once
#include "braid/autograd.h"
#include "braid/models/folders/folder.h"
#include "braid/models/model_spec.h"
#include "braid/tensor/io/safetensors.h"

namespace braid::apps {

// Adds grad.<name> for every tensor that folders of the family have on disk.
inline void add_gradients(const models::Model& model, const Tensor& loss, io::NamedTensors& out) {
  backward(loss);
  const std::unique_ptr<const models::ModelSpec> spec = model.spec();
  for (const nn::NamedTensor& p : nn::parameters(model)) {
    const Tensor derivative = grad(p.value) ? grad(p.value) : zeros_like(p.value);
    for (const nn::NamedTensor& t : models::split_stored(spec->folder().stored(p.name, p.value.shape()), derivative))
      out.emplace_back("grad." + t.name, t.value);
  }
}

}  // namespace braid::apps
