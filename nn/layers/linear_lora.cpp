// The pair of LoRA of a linear layer: set, and merged into the weight.
#include "braid/autograd/ops.h"
#include "braid/autograd/record.h"
#include "braid/nn/layers/linear.h"

namespace braid::nn {

void Linear::set_lora(Tensor a, Tensor b, double alpha) {
  check(takes_lora_, "linear", "the weight is used without the layer: LoRA has no effect");
  check(a.rank() == 2 && b.rank() == 2 && a.dim(0) == b.dim(1) && a.dim(1) == weight_.dim(1) &&
            b.dim(0) == weight_.dim(0),
        "linear", [&] {
          return str("LoRA of a weight ", weight_.shape(), " needs A (r, in) and B (out, r), got ", a.shape(), " and ",
                     b.shape());
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
