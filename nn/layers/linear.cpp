#include "braid/nn/layers/linear.h"

#include "braid/autograd/int8.h"
#include "braid/autograd/ops.h"

namespace braid::nn {

Linear::Linear(int64_t in, int64_t out, const Options& options, RandomKey key)
    : weight_(parameter(options.init.make({out, in}, child(key, "weight")))),
      shard_(options.shard),
      takes_lora_(options.takes_lora) {
  if (options.bias) bias_ = parameter(Init::constant(0).make({out}, {}));
}

Tensor Linear::product(const Tensor& x, const Tensor& bias) const {
  const Tensor y = scale_ ? linear_int8(x, {weight_, scale_}, bias) : linear(x, weight_, bias);
  return lora_.empty() ? y : add(y, scale(lora_product(x), lora_scale()));
}

Tensor Linear::operator()(const Tensor& x) const { return product(x, bias_); }

Tensor Linear::row_parallel(const Tensor& x, const ShardContext* shards) const {
  if (!shards) return (*this)(x);
  Tensor y = shards->reduce_rows(product(x, {}));
  return bias_ ? add(y, bias_) : y;
}

}  // namespace braid::nn
