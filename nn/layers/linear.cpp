#include "braid/nn/layers/linear.h"

#include "braid/autograd/int8.h"
#include "braid/autograd/ops.h"
#include "braid/nn/outputs.h"

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

Tensor Linear::operator()(const Tensor& x) const { return output(*this, product(x, bias_)); }

LinearPair Linear::both(const Linear& a, const Linear& b, const Tensor& x) {
  const auto plain = [](const Linear& l) { return !l.scale_ && !l.bias_ && l.lora_.empty(); };
  if (!plain(a) || !plain(b)) return {a(x), b(x)};
  LinearPair pair = linear_pair(x, a.weight_, b.weight_);
  output(a, pair.a);
  output(b, pair.b);
  return pair;
}

Tensor Linear::row_parallel(const Tensor& x, const ShardContext* shards) const {
  if (!shards) return (*this)(x);
  Tensor y = shards->reduce_rows(product(x, {}));
  return output(*this, bias_ ? add(y, bias_) : y);
}

}  // namespace braid::nn
