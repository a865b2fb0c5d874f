#include "braid/autograd/detail/linear_loss.h"

#include <algorithm>

#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"

namespace braid::detail {

LinearLoss::LinearLoss(const Tensor& hidden, const Tensor& weight, int64_t chunk_rows)
    : hidden_(hidden),
      weight_(weight),
      h_(hidden.detach().contiguous().reshaped({hidden.numel() / weight.dim(1), weight.dim(1)})),
      w_(weight.detach().contiguous()),
      type_(accumulate_type(hidden.dtype())),
      chunk_rows_(chunk_rows) {
  if (!braid::recording({hidden, weight})) return;
  if (requires_grad(hidden)) dhidden_ = empty(h_.shape(), type_, hidden.device());
  if (requires_grad(weight)) {
    MemoryScope scope(MemoryUse::gradients);
    dweight_ = zeros(w_.shape(), type_, hidden.device());
  }
}

Tensor LinearLoss::padded(int64_t rows, DType type) const {
  const int64_t vocabulary = w_.dim(0), multiple = backend(h_.device()).loss.row_multiple;
  const int64_t pitch = (vocabulary + multiple - 1) / multiple * multiple;
  return empty({rows, pitch}, type, h_.device()).sliced(1, 0, vocabulary);
}

void LinearLoss::for_each_chunk(const std::function<void(int64_t, int64_t, Tensor&)>& chunk) {
  const Backend& b = backend(h_.device());
  MemoryScope scope(MemoryUse::workspace);
  const bool rounded = h_.dtype() == DType::bf16 && b.loss.bf16_logits;
  Tensor buffer = padded(std::min(chunk_rows_, rows()), rounded ? DType::bf16 : type_);
  for (int64_t begin = 0; begin < rows(); begin += chunk_rows_) {
    int64_t end = std::min(rows(), begin + chunk_rows_);
    Tensor h = h_.sliced(0, begin, end), logits = buffer.sliced(0, 0, end - begin);
    b.matmul.product(h, w_.transposed(), false, logits);
    chunk(begin, end, logits);
    if (!gradients()) continue;
    Tensor dlogits = logits;
    if (logits.dtype() != h_.dtype()) {
      dlogits = padded(end - begin, h_.dtype());
      dlogits.copy_(logits);
    }
    if (dhidden_) {
      Tensor part = dhidden_.sliced(0, begin, end);
      b.matmul.product(dlogits, w_, false, part);
    }
    if (dweight_) b.matmul.product(dlogits.transposed(), h, true, dweight_);
  }
}

Tensor LinearLoss::record(const char* op, const Tensor& loss, Composed composed) {
  Shape shape = hidden_.shape();
  DType stored = hidden_.dtype();
  auto backward = [dhidden = dhidden_, dweight = dweight_, shape, stored](const Tensor& dy) -> Grads {
    // In the memory of g, unless another pass will need it.
    auto times_dy = [&](const Tensor& g) {
      Tensor product = history_is_kept() ? empty_like(g) : g;
      const Tensor factor = dy.contiguous().reshaped({1, 1}).expanded(g.shape());
      backend(g.device()).pointwise.binary(BinaryOp::mul, g, factor, product);
      return product.to(stored);
    };
    return {dhidden ? times_dy(dhidden).reshaped(shape) : Tensor(), dweight ? times_dy(dweight) : Tensor()};
  };
  if (!composed) return braid::record(op, loss, {hidden_, weight_}, std::move(backward));
  const auto either = [backward, composed = std::move(composed), hidden = hidden_,
                       weight = weight_](const Tensor& dy) -> Grads {
    return recording() ? composed_gradients({hidden, weight}, composed, {dy}) : backward(dy);
  };
  return braid::record(op, loss, {hidden_, weight_}, differentiable(either));
}

}  // namespace braid::detail
