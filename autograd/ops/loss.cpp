// Losses. Cross-entropy of logits x (..., V) against target ids t (...); a negative target is not counted.
//   loss = logsumexp(x) - x[t],   dloss/dx = softmax(x) - onehot(t)

#include "braid/autograd/composed.h"
#include "braid/autograd/detail/check.h"
#include "braid/autograd/detail/composed_gradients.h"
#include "braid/autograd/detail/linear_loss.h"
#include "braid/autograd/detail/token_losses.h"
#include "braid/autograd/math.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/kernels/pointwise_ops.h"
#include "braid/tensor/layer_scope.h"

namespace braid {

constinit thread_local detail::KeptLosses* detail::token_losses = nullptr;

namespace {

struct Losses {
  Tensor logits, targets, loss;  // (R, V), (R), (R)
  Tensor top, log_sum;           // (R), of every row of logits (tensor/kernels/loss.h)
};

Losses losses(const char* op, const Tensor& logits, const Tensor& targets) {
  check(logits.rank() >= 1, op, [&] { return str("needs logits (..., V), got ", logits.shape()); });
  Shape rows;
  for (int a = 0; a < logits.rank() - 1; ++a) rows.push_back(logits.dim(a));
  check(targets.shape() == rows, op,
        [&] { return str("targets ", targets.shape(), " do not fit logits ", logits.shape(), ": need one per row"); });
  check(targets.device() == logits.device(), op,
        [&] { return str("the logits are on ", logits.device(), ", the targets on ", targets.device()); });
  check_ids(op, "target", targets, logits.dim(-1), true);
  int64_t count = targets.numel();
  Losses out;
  out.logits = logits.detach().contiguous().reshaped({count, logits.dim(-1)});
  out.targets = targets.contiguous().reshaped({count});
  out.loss = empty({count}, accumulate_type(logits.dtype()), logits.device());
  out.top = empty_like(out.loss);
  out.log_sum = empty_like(out.loss);
  backend(logits.device()).loss.cross_entropy(out.logits, out.targets, out.loss, out.top, out.log_sum);
  return out;
}

// scale: one factor, or one per row.
Tensor logits_gradient(const Losses& saved, const Tensor& scale, const Shape& shape) {
  Tensor dlogits = empty_like(saved.logits);
  backend(scale.device())
      .loss.cross_entropy_backward(saved.logits, saved.targets, saved.top, saved.log_sum, scale, 0, dlogits);
  return dlogits.reshaped(shape);
}

// (softmax(x) - onehot(t)) scale of the counted rows, by ops that record; scale (...), one per row.
Tensor recorded_gradient(const Tensor& logits, const Tensor& targets, const Tensor& scale) {
  const Tensor mask = ge(targets, 0.0), zero = zeros({}, targets.dtype(), targets.device());
  const Tensor ids = where(mask, targets, zero);
  const Tensor wide = cast(logits, scale.dtype());
  const Tensor distance = sub(softmax(wide), one_hot(ids, logits.dim(-1), scale.dtype()));
  return cast(mul(distance, unsqueeze(mul(scale, cast(mask, scale.dtype())), -1)), logits.dtype());
}

Tensor total(const Tensor& loss) {
  Tensor sum = empty({1}, loss.dtype(), loss.device());
  backend(loss.device()).reduce.axes(ReduceOp::sum, loss, sum);
  return sum.reshaped({});
}

// sum + z sum (top + log_sum)^2; where a target is not counted, top and log_sum are 0.
Tensor sum_with_z(const Tensor& sum, const Tensor& top, const Tensor& log_sum, double z) {
  const PointwiseKernels& k = backend(sum.device()).pointwise;
  Tensor squares = empty_like(top), result = empty_like(sum);
  k.binary(BinaryOp::add, top, log_sum, squares);
  k.unary(UnaryOp::square, 0, 0, squares, squares);
  k.unary(UnaryOp::affine, z, 0, squares, squares);
  k.binary(BinaryOp::add, sum, total(squares), result);
  return result;
}

}  // namespace

Tensor cross_entropy_per_token(const Tensor& logits, const Tensor& targets) {
  const CalledOp called("cross_entropy_per_token");
  const LayerScope layer("head");
  Losses saved = losses("cross_entropy_per_token", logits, targets);
  TokenLosses::keep(saved.loss);
  Tensor y = saved.loss.reshaped(targets.shape());
  saved.loss = Tensor();
  Shape shape = logits.shape();
  return record("cross_entropy_per_token", y, {logits, targets},
                differentiable([saved, shape, targets, of_logits = detail::History(logits)](const Tensor& dy) -> Grads {
                  if (recording())
                    return {recorded_gradient(of_logits.on(saved.logits.reshaped(shape)), targets, dy), {}};
                  return {logits_gradient(saved, dy.contiguous().reshaped({dy.numel()}), shape), {}};
                }));
}

Tensor mse_loss(const Tensor& x, const Tensor& y) {
  const CalledOp called("mse_loss");
  check(x.shape() == y.shape(), "mse_loss", [&] {
    return str("shapes ", x.shape(), " and ", y.shape(), " differ; losses do not broadcast: reshape() or expand() one");
  });
  return mean(square(sub(x, y)));
}

// The mean over counted targets; 0 with zero gradient when there is none.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets) {
  Losses saved = losses("cross_entropy", logits, targets);
  const Backend& b = backend(logits.device());
  Tensor count = empty({1}, saved.loss.dtype(), logits.device()), y = total(saved.loss).reshaped({1});
  b.loss.count_targets(saved.targets, count);
  b.pointwise.binary(BinaryOp::div, y, count, y);
  saved.loss = Tensor();
  Shape shape = logits.shape();
  return record(
      "cross_entropy", y.reshaped({}), {logits, targets},
      differentiable([saved, shape, count, targets, of_logits = detail::History(logits)](const Tensor& dy) -> Grads {
        if (recording()) {
          const Tensor each = expand(div(cast(dy, count.dtype()), count.reshaped({})), targets.shape());
          return {recorded_gradient(of_logits.on(saved.logits.reshaped(shape)), targets, each), {}};
        }
        Tensor scale = empty({1}, dy.dtype(), dy.device());
        backend(dy.device()).pointwise.binary(BinaryOp::div, dy.contiguous().reshaped({1}), count, scale);
        return {logits_gradient(saved, scale, shape), {}};
      }));
}

// The sum over counted targets of logsumexp(y) - y[t] + z logsumexp(y)^2, y = softcap(x), x = h W^T, h (R, D), W (V,
// D), by chunks of rows:
//   dy = (1 + 2 z logsumexp(y)) softmax(y) - onehot;   the rest of the derivative is in detail/linear_loss.h.
// loss and dy come from one kernel, which writes dy over y. Composed: cross_entropy_per_token(softcap(linear(h, W)))
// and z logsumexp^2, summed.
Tensor linear_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& targets,
                            const LinearLossOptions& options) {
  const char* op = "linear_cross_entropy";
  const CalledOp called(op);
  const LayerScope layer("head");
  check_same(op, hidden, weight);
  check(hidden.rank() >= 1 && weight.rank() == 2 && hidden.dim(-1) == weight.dim(1), op, [&] {
    return str("hidden ", hidden.shape(), " does not fit weight ", weight.shape(), ": need (..., D) and (V, D)");
  });
  Shape leading;
  for (int a = 0; a < hidden.rank() - 1; ++a) leading.push_back(hidden.dim(a));
  check(targets.shape() == leading, op,
        [&] { return str("targets ", targets.shape(), " do not fit hidden ", hidden.shape(), ": need one per row"); });
  check(targets.device() == hidden.device(), op,
        [&] { return str("hidden is on ", hidden.device(), ", the targets on ", targets.device()); });
  check_ids(op, "target", targets, weight.dim(0), true);

  const Backend& b = backend(hidden.device());
  detail::LinearLoss chunks(op, hidden, weight, options);
  MemoryScope scope(MemoryUse::workspace);
  Tensor ids = targets.contiguous().reshaped({chunks.rows()});
  Tensor loss = empty(ids.shape(), chunks.type(), hidden.device()), top = empty_like(loss), log_sum = empty_like(loss);
  chunks.for_each_chunk([&](int64_t begin, int64_t end, Tensor& logits) {
    auto rows = [&](const Tensor& x) { return x.sliced(0, begin, end); };
    Tensor chunk_ids = rows(ids), chunk_loss = rows(loss), chunk_top = rows(top), chunk_log_sum = rows(log_sum);
    if (chunks.gradients()) {
      b.loss.in_place(logits, chunk_ids, options.z_loss, chunk_loss, chunk_top, chunk_log_sum);
    } else {
      b.loss.cross_entropy(logits, chunk_ids, chunk_loss, chunk_top, chunk_log_sum);
    }
  });
  Tensor y = total(loss);
  TokenLosses::keep(loss, options.z_loss > 0 ? y : Tensor());
  if (options.z_loss > 0) y = sum_with_z(y, top, log_sum, options.z_loss);
  const auto composed = [options](const std::vector<Tensor>& in) {
    const DType type = accumulate_type(in[0].dtype());
    Tensor logits = linear(cast(in[0], type), cast(in[1], type));
    if (options.softcap > 0) logits = softcap(logits, options.softcap);
    const Tensor plain = sum(cross_entropy_per_token(logits, in[2]));
    if (options.z_loss == 0) return std::vector<Tensor>{plain};
    const Tensor squares = masked_fill(square(logsumexp(logits, -1)), lt(in[2], 0.0), 0);
    return std::vector<Tensor>{add(plain, scale(sum(squares), options.z_loss))};
  };
  return chunks.record(y, composed, targets);
}

Tensor linear_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& targets, int64_t chunk_rows) {
  return linear_cross_entropy(hidden, weight, targets, LinearLossOptions{.chunk_rows = chunk_rows});
}

}  // namespace braid
