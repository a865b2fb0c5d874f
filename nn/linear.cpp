#include "braid/nn/linear.h"

#include "braid/autograd/ops.h"

namespace braid::nn {

Linear::Linear(int64_t in, int64_t out, const Options& options, RandomKey key)
    : weight_(parameter(options.init.make({out, in}, child(key, "weight")))), shard_(options.shard) {
  if (options.bias) bias_ = parameter(Init::constant(0).make({out}, {}));
}

Tensor Linear::operator()(const Tensor& x) const { return linear(x, weight_, bias_); }

Tensor Linear::row_parallel(const Tensor& x, const ShardContext* shards) const {
  if (!shards) return (*this)(x);
  Tensor y = shards->reduce_rows(linear(x, weight_));
  return bias_ ? add(y, bias_) : y;
}

}  // namespace braid::nn
