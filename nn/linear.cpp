#include "braid/nn/linear.h"

#include "braid/autograd/ops.h"
#include "braid/autograd/record.h"

namespace braid::nn {

Linear::Linear(int64_t in, int64_t out, const Options& options, RandomKey key)
    : weight_(parameter(options.init.make({out, in}, child(key, "weight")))),
      shard_(options.shard),
      takes_lora_(options.takes_lora) {
  if (options.bias) bias_ = parameter(Init::constant(0).make({out}, {}));
}

Tensor Linear::operator()(const Tensor& x) const { return with_lora(linear(x, weight_, bias_), x); }

Tensor Linear::row_parallel(const Tensor& x, const ShardContext* shards) const {
  if (!shards) return (*this)(x);
  Tensor y = shards->reduce_rows(with_lora(linear(x, weight_), x));
  return bias_ ? add(y, bias_) : y;
}

// y + alpha / r (x A^T) B^T
Tensor Linear::with_lora(const Tensor& y, const Tensor& x) const {
  return lora_a_ ? add(y, scale(linear(linear(x, lora_a_), lora_b_), lora_scale())) : y;
}

void Linear::set_lora(Tensor a, Tensor b, double alpha) {
  check(takes_lora_, "linear", [] { return std::string("the weight is used without the layer: LoRA has no effect"); });
  check(a.rank() == 2 && b.rank() == 2 && a.dim(0) == b.dim(1) && a.dim(1) == weight_.dim(1) &&
            b.dim(0) == weight_.dim(0),
        "linear", [&] {
          return "LoRA of a weight " + str(weight_.shape()) + " needs A (r, in) and B (out, r), got " + str(a.shape()) +
                 " and " + str(b.shape());
        });
  lora_a_ = parameter(std::move(a));
  lora_b_ = parameter(std::move(b));
  lora_alpha_ = alpha;
}

void Linear::merge_lora() {
  if (!lora_a_) return;
  const NoGrad off;
  const DType wide = accumulate_type(weight_.dtype());
  const Tensor product = matmul(lora_b_.detach().to(wide), lora_a_.detach().to(wide));
  weight_.copy_(add(weight_.detach().to(wide), scale(product, lora_scale())).to(weight_.dtype()));
  lora_a_ = lora_b_ = Tensor();
}

}  // namespace braid::nn
