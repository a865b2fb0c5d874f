// The pair of LoRA of a linear layer: set, and merged into the weight.
#include "braid/autograd/ops.h"
#include "braid/autograd/record.h"
#include "braid/nn/layers/linear.h"

namespace braid::nn {

void Linear::set_lora(std::vector<LoraPair> pairs, double alpha) {
  check(takes_lora_, "linear", "the weight is used without the layer: LoRA has no effect");
  int64_t row = 0;
  for (LoraPair& p : pairs) {
    const int64_t rows = p.b.dim(0);
    const bool fits = p.part.empty() ? pairs.size() == 1 && rows == weight_.dim(0)
                                     : p.first >= row && p.first + rows <= weight_.dim(0);
    check(p.a.rank() == 2 && p.b.rank() == 2 && p.a.dim(0) == p.b.dim(1) && p.a.dim(0) == pairs[0].a.dim(0) &&
              p.a.dim(1) == weight_.dim(1) && fits,
          "linear", [&] {
            return str("LoRA of a weight ", weight_.shape(), " needs A (r, in) and B (out, r), got ", p.a.shape(),
                       " and ", p.b.shape(), p.part.empty() ? "" : str(" for its part ", p.part));
          });
    row = p.first + rows;
    p.a = parameter(std::move(p.a));
    p.b = parameter(std::move(p.b));
  }
  lora_ = std::move(pairs);
  lora_alpha_ = alpha;
}

Tensor Linear::lora_product(const Tensor& x) const {
  std::vector<Tensor> blocks;  // of the outputs
  int64_t row = 0;
  const auto no_change_before = [&](int64_t end) {
    Shape shape = x.shape();
    shape[shape.rank() - 1] = end - row;
    if (end > row) blocks.push_back(zeros(shape, x.dtype(), x.device()));
  };
  for (const LoraPair& pair : lora_) {
    no_change_before(pair.first);
    blocks.push_back(linear(linear(x, pair.a), pair.b));
    row = pair.first + pair.b.dim(0);
  }
  no_change_before(weight_.dim(0));
  return blocks.size() == 1 ? blocks[0] : concat(blocks, x.rank() - 1);
}

void Linear::merge_lora() {
  if (lora_.empty()) return;
  const NoGrad off;
  const DType wide = accumulate_type(weight_.dtype());
  for (const LoraPair& pair : lora_) {
    Tensor rows = weight_.detach().sliced(0, pair.first, pair.first + pair.b.dim(0));
    const Tensor product = matmul(pair.b.detach().to(wide), pair.a.detach().to(wide));
    rows.copy_(add(rows.to(wide), scale(product, lora_scale())).to(weight_.dtype()));
  }
  lora_.clear();
}

}  // namespace braid::nn
