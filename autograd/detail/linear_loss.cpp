#include "braid/autograd/detail/linear_loss.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "braid/autograd/detail/check.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"

namespace braid::detail {

namespace {
// R of hidden (..., D), also for D = 0.
int64_t rows_of(const Tensor& hidden) {
  int64_t rows = 1;
  for (int a = 0; a < hidden.rank() - 1; ++a) rows *= hidden.dim(a);
  return rows;
}
}  // namespace

Tensor wide_linear(const Tensor& hidden, const Tensor& weight) {
  Shape shape = hidden.shape();
  shape[-1] = weight.dim(0);
  Tensor x = empty({rows_of(hidden), weight.dim(0)}, accumulate_type(hidden.dtype()), hidden.device());
  const Tensor rows = hidden.detach().contiguous().reshaped({x.dim(0), weight.dim(1)});
  backend(hidden.device()).matmul.product(rows, weight.detach().contiguous().transposed(), false, x);
  return x.reshaped(shape);
}

LinearLoss::LinearLoss(const char* op, const Tensor& hidden, const Tensor& weight, const LinearLossOptions& options)
    : op_(op),
      hidden_(hidden),
      weight_(weight),
      h_(hidden.detach().contiguous().reshaped({rows_of(hidden), weight.dim(1)})),
      w_(weight.detach().contiguous()),
      type_(accumulate_type(hidden.dtype())),
      options_(options) {
  check(options.chunk_rows >= 1, op, [&] { return str("chunk_rows must be at least 1, got ", options.chunk_rows); });
  for (const auto& [name, value] : {std::pair{"softcap", options.softcap}, {"z_loss", options.z_loss}})
    check(value >= 0 && std::isfinite(value), op, [option = name, found = value] {
      return str(option, " must be finite and at least 0, got ", shortest(found));
    });
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
  return empty({rows, pitch}, type, h_.device());
}

void LinearLoss::for_each_chunk(const std::function<void(int64_t, int64_t, Tensor&)>& chunk) {
  const Backend& b = backend(h_.device());
  MemoryScope scope(MemoryUse::workspace);
  const bool rounded = h_.dtype() == DType::bf16 && b.loss.bf16_logits;
  const DType type = rounded ? DType::bf16 : type_;
  const int64_t chunk_rows = std::min(options_.chunk_rows, rows());
  const double cap = options_.softcap;
  Tensor buffer = padded(chunk_rows, type), of_capped = cap > 0 && gradients() ? padded(chunk_rows, type) : buffer;
  for (int64_t begin = 0; begin < rows(); begin += chunk_rows) {
    int64_t end = std::min(rows(), begin + chunk_rows);
    Tensor h = h_.sliced(0, begin, end), x = buffer.sliced(0, 0, end - begin), y = of_capped.sliced(0, 0, end - begin);
    Tensor products = logits_of(x), logits = logits_of(y);
    b.matmul.product(h, w_.transposed(), false, products);
    if (cap > 0) b.pointwise.unary(UnaryOp::softcap, cap, 0, x, y);  // with the padding, whose values do not count
    chunk(begin, end, logits);
    if (!gradients()) continue;
    if (cap > 0) b.pointwise.unary_backward(UnaryOp::softcap, cap, 0, x, y, y);
    Tensor dlogits = logits;
    if (logits.dtype() != h_.dtype()) {
      dlogits = logits_of(padded(end - begin, h_.dtype()));
      dlogits.copy_(logits);
    }
    if (dhidden_) {
      Tensor part = dhidden_.sliced(0, begin, end);
      b.matmul.product(dlogits, w_, false, part);
    }
    if (dweight_) b.matmul.product(dlogits.transposed(), h, true, dweight_);
  }
}

Tensor LinearLoss::record(const Tensor& loss, Composed composed, const Tensor& targets) {
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
    return {dhidden ? times_dy(dhidden).reshaped(shape) : Tensor(), dweight ? times_dy(dweight) : Tensor(), {}};
  };
  if (!composed) return braid::record(op_, loss, {hidden_, weight_, targets}, std::move(backward));
  const auto either = [backward, composed = std::move(composed), hidden = hidden_, weight = weight_,
                       targets](const Tensor& dy) -> Grads {
    return recording() ? composed_gradients({hidden, weight, targets}, composed, {dy}) : backward(dy);
  };
  return braid::record(op_, loss, {hidden_, weight_, targets}, differentiable(either));
}

}  // namespace braid::detail
