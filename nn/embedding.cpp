#include "nn/embedding.h"

#include "autograd/ops.h"

namespace braid::nn {

Embedding::Embedding(int64_t vocabulary, int64_t width, const Init& init, RandomKey key)
    : weight_(init.make({vocabulary, width}, child(key, "weight"))) {}

Tensor Embedding::operator()(const Tensor& ids) const { return embedding(weight_, ids); }

}  // namespace braid::nn
