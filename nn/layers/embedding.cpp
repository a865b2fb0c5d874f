#include "braid/nn/layers/embedding.h"

#include "braid/autograd/ops.h"
#include "braid/nn/outputs.h"
#include "braid/tensor/layer_scope.h"

namespace braid::nn {

Embedding::Embedding(int64_t vocabulary, int64_t width, const Init& init, RandomKey key)
    : vocabulary_(vocabulary), weight_(parameter(init.make({vocabulary, width}, child(key, "weight")))) {}

Tensor Embedding::operator()(const Tensor& ids) const {
  const LayerScope layer("embedding");
  return output(*this, embedding(weight_, ids));
}

}  // namespace braid::nn
