// Weights for tests of formulas.
#pragma once
#include "braid/autograd/ops.h"
#include "braid/nn/module.h"

namespace braid::test {

// Every parameter random, so that no term of the model vanishes.
inline void randomise(const nn::Module& model, RandomKey key, double deviation) {
  for (const nn::NamedTensor& p : nn::parameters(model))
    p.value.detach().copy_(randn(p.value.shape(), child(key, p.name.c_str()), p.value.dtype()) * deviation);
}

}  // namespace braid::test
