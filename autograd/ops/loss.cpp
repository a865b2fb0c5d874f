// Cross-entropy of logits x (..., V) against target ids t (...); a negative target is not counted.
//   loss = logsumexp(x) - x[t],   dloss/dx = softmax(x) - onehot(t)
#include <algorithm>

#include "braid/autograd/detail/check.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"

namespace braid {

namespace {

struct Losses {
  Tensor logits, targets, loss, lse;  // (R, V), (R), (R), (R)
};

Losses losses(const char* op, const Tensor& logits, const Tensor& targets) {
  check(logits.rank() >= 1, op, [&] { return "needs logits (..., V), got " + str(logits.shape()); });
  Shape rows;
  for (int a = 0; a < logits.rank() - 1; ++a) rows.push_back(logits.dim(a));
  check(targets.shape() == rows, op, [&] {
    return "targets " + str(targets.shape()) + " do not fit logits " + str(logits.shape()) + ": need one per row";
  });
  check(targets.device() == logits.device(), op,
        [&] { return "the logits are on " + str(logits.device()) + ", the targets on " + str(targets.device()); });
  check_ids(op, "target", targets, logits.dim(-1), true);
  int64_t count = targets.numel();
  Losses out;
  out.logits = logits.contiguous().reshaped({count, logits.dim(-1)});
  out.targets = targets.contiguous().reshaped({count});
  out.loss = empty({count}, accumulate_type(logits.dtype()), logits.device());
  out.lse = empty_like(out.loss);
  backend(logits.device()).loss.cross_entropy(out.logits, out.targets, out.loss, out.lse);
  return out;
}

// scale: one factor, or one per row.
Tensor logits_gradient(const Losses& saved, const Tensor& scale, const Shape& shape) {
  Tensor dlogits = empty_like(saved.logits);
  backend(scale.device()).loss.cross_entropy_backward(saved.logits, saved.targets, saved.lse, scale, dlogits);
  return dlogits.reshaped(shape);
}

Tensor total(const Tensor& loss) {
  Tensor sum = empty({1}, loss.dtype(), loss.device());
  backend(loss.device()).reduce.axes(ReduceOp::sum, loss, sum);
  return sum.reshaped({});
}

// y *= factor, a tensor of one element, in place.
void multiply(Tensor& y, const Tensor& factor) {
  Shape one;
  for (int a = 0; a < y.rank(); ++a) one.push_back(1);
  backend(y.device()).pointwise.binary(BinaryOp::mul, y, factor.contiguous().reshaped(one).expanded(y.shape()), y);
}

}  // namespace

Tensor cross_entropy_per_token(const Tensor& logits, const Tensor& targets) {
  Losses saved = losses("cross_entropy_per_token", logits, targets);
  Tensor y = saved.loss.reshaped(targets.shape());
  saved.loss = Tensor();
  Shape shape = logits.shape();
  return record("cross_entropy_per_token", y, {logits}, [saved, shape](const Tensor& dy) -> Grads {
    return {logits_gradient(saved, dy.contiguous().reshaped({dy.numel()}), shape)};
  });
}

// The mean over counted targets; 0 with zero gradient when there is none.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets) {
  Losses saved = losses("cross_entropy", logits, targets);
  std::vector<int64_t> ids = saved.targets.to_vector<int64_t>();
  int64_t count = std::count_if(ids.begin(), ids.end(), [](int64_t id) { return id >= 0; });
  double factor = count == 0 ? 0.0 : 1.0 / static_cast<double>(count);
  Tensor y = total(saved.loss);
  backend(y.device()).pointwise.unary(UnaryOp::affine, factor, 0, y, y);
  saved.loss = Tensor();
  Shape shape = logits.shape();
  return record("cross_entropy", y, {logits}, [saved, shape, factor](const Tensor& dy) -> Grads {
    Tensor scale = empty({1}, dy.dtype(), dy.device());
    backend(dy.device()).pointwise.unary(UnaryOp::affine, factor, 0, dy.contiguous().reshaped({1}), scale);
    return {logits_gradient(saved, scale, shape)};
  });
}

// The sum over counted targets of the cross-entropy of x = h W^T, h (R, D), W (V, D), by chunks of rows:
//   dx = softmax(x) - onehot,   dh = dx W,   dW = sum over chunks of dx^T h,
// formed during the forward pass, while the chunk's logits are at hand; backward only multiplies by dy. With 16-bit
// inputs the logits, the loss, dh and dW are f32 (the two gradients rounded once, at the end); only dx is rounded for
// its products.
Tensor linear_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& targets, int64_t chunk_rows) {
  const char* op = "linear_cross_entropy";
  check_same(op, hidden, weight);
  check(hidden.rank() >= 1 && weight.rank() == 2 && hidden.dim(-1) == weight.dim(1), op, [&] {
    return "hidden " + str(hidden.shape()) + " does not fit weight " + str(weight.shape()) +
           ": need (..., D) and (V, D)";
  });
  Shape leading;
  for (int a = 0; a < hidden.rank() - 1; ++a) leading.push_back(hidden.dim(a));
  check(targets.shape() == leading, op, [&] {
    return "targets " + str(targets.shape()) + " do not fit hidden " + str(hidden.shape()) + ": need one per row";
  });
  check(targets.device() == hidden.device(), op,
        [&] { return "hidden is on " + str(hidden.device()) + ", the targets on " + str(targets.device()); });
  check(chunk_rows >= 1, op, [&] { return "chunk_rows must be at least 1, got " + std::to_string(chunk_rows); });
  int64_t width = hidden.dim(-1), vocabulary = weight.dim(0), rows = targets.numel();
  check_ids(op, "target", targets, vocabulary, true);

  const Backend& b = backend(hidden.device());
  DType type = accumulate_type(hidden.dtype());
  bool record_on = recording({hidden, weight});
  Tensor h = hidden.contiguous().reshaped({rows, width}), w = weight.contiguous();
  Tensor ids = targets.contiguous().reshaped({rows});
  Tensor dhidden, dweight;
  if (record_on && requires_grad(hidden)) dhidden = empty({rows, width}, type, hidden.device());
  if (record_on && requires_grad(weight)) {
    MemoryScope scope(MemoryUse::gradients);
    dweight = zeros({vocabulary, width}, type, hidden.device());
  }
  MemoryScope scope(MemoryUse::workspace);
  Tensor loss = empty({rows}, type, hidden.device()), lse = empty_like(loss), one = full({1}, 1, type, hidden.device());
  Tensor buffer = empty({std::min(chunk_rows, rows), vocabulary}, type, hidden.device());
  for (int64_t begin = 0; begin < rows; begin += chunk_rows) {
    int64_t end = std::min(rows, begin + chunk_rows);
    Tensor chunk = h.sliced(0, begin, end), logits = buffer.sliced(0, 0, end - begin);
    Tensor chunk_ids = ids.sliced(0, begin, end), chunk_lse = lse.sliced(0, begin, end);
    Tensor chunk_loss = loss.sliced(0, begin, end);
    b.matmul.product(chunk, w.transposed(), false, logits);
    b.loss.cross_entropy(logits, chunk_ids, chunk_loss, chunk_lse);
    if (!dhidden && !dweight) continue;
    b.loss.cross_entropy_backward(logits, chunk_ids, chunk_lse, one, logits);
    Tensor dlogits = logits.to(hidden.dtype());
    if (dhidden) {
      Tensor part = dhidden.sliced(0, begin, end);
      b.matmul.product(dlogits, w, false, part);
    }
    if (dweight) b.matmul.product(dlogits.transposed(), chunk, true, dweight);
  }
  Shape shape = hidden.shape();
  DType stored = hidden.dtype();
  return record(op, total(loss), {hidden, weight}, [dhidden, dweight, shape, stored](const Tensor& dy) -> Grads {
    Tensor dh = dhidden, dw = dweight;
    if (dh) {
      multiply(dh, dy);
      dh = dh.to(stored).reshaped(shape);
    }
    if (dw) {
      multiply(dw, dy);
      dw = dw.to(stored);
    }
    return {dh, dw};
  });
}

}  // namespace braid
