#include "braid/autograd/losses.h"

#include <limits>
#include <string>

#include "braid/autograd/composed.h"
#include "braid/autograd/detail/check.h"
#include "braid/autograd/math.h"
#include "braid/tensor/base/strings.h"

namespace braid {

namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

Tensor reduce_loss(const Tensor& loss, Reduction reduction) {
  switch (reduction) {
    case Reduction::mean:
      return mean(loss);
    case Reduction::sum:
      return sum(loss);
    case Reduction::none:
      break;
  }
  return loss;
}

void check_pair(const char* op, const Tensor& x, const Tensor& y) {
  check_float(op, x);
  check_same(op, x, y);
  check(x.shape() == y.shape(), op, [&] {
    return str("shapes ", x.shape(), " and ", y.shape(), " differ; losses do not broadcast: reshape() or expand() one");
  });
}

void check_reach(const char* op, const char* what, double value, bool ok) {
  check(ok, op, [&] { return str(what, ", got ", detail::shortest(value)); });
}

// log_p (..., V), targets (...). See cross_entropy() in the header.
Tensor class_loss(const char* op, const Tensor& log_p, const Tensor& targets, const CrossEntropyOptions& o) {
  check(log_p.rank() >= 1 && log_p.dim(-1) >= 1, op,
        [&] { return str("needs at least one class on the last axis, got ", log_p.shape()); });
  const int64_t V = log_p.dim(-1);
  Shape rows;
  for (int a = 0; a < log_p.rank() - 1; ++a) rows.push_back(log_p.dim(a));
  check(targets.shape() == rows, op,
        [&] { return str("targets ", targets.shape(), " do not fit ", log_p.shape(), ": need one per row"); });
  check(targets.device() == log_p.device(), op,
        [&] { return str("the input is on ", log_p.device(), ", the targets on ", targets.device()); });
  check(is_index(targets.dtype()), op, [&] {
    return str("targets must be i64 or i32, got ", targets.dtype(), "; cast(targets, DType::i64) converts");
  });
  check(!o.weight || o.weight.shape() == Shape{V}, op,
        [&] { return str("the weight must be (", V, "), one number per class, got ", o.weight.shape()); });
  check_reach(op, "label_smoothing must lie in [0, 1]", o.label_smoothing,
              o.label_smoothing >= 0 && o.label_smoothing <= 1);
  const Tensor zero = zeros({}, targets.dtype(), targets.device());
  Tensor ids = targets;
  if (o.ignore_index >= 0)
    ids = where(eq(ids, static_cast<double>(o.ignore_index)), full({}, -1, ids.dtype(), ids.device()), ids);
  const Tensor counted = ge(ids, 0.0);  // (...)
  ids = where(counted, ids, zero);
  check_ids(op, "target", ids, V);
  const Tensor nothing = zeros({}, log_p.dtype(), log_p.device());
  const Tensor weight = o.weight ? cast(o.weight, log_p.dtype()) : Tensor();
  Tensor scale_of_row = cast(counted, log_p.dtype());  // (...): w[t]
  if (weight) scale_of_row = mul(scale_of_row, index_select(weight, ids));
  const Tensor picked = gather(log_p, ids);
  Tensor loss = neg(weight ? mul(picked, scale_of_row) : picked);
  if (o.label_smoothing > 0) {
    const Tensor all = sum(weight ? mul(log_p, weight) : log_p, {-1});
    loss = sub(loss * (1 - o.label_smoothing), all * (o.label_smoothing / static_cast<double>(V)));
  }
  loss = where(counted, loss, nothing);
  if (o.reduction != Reduction::mean) return reduce_loss(loss, o.reduction);
  const Tensor total = sum(scale_of_row);
  return div(sum(loss), where(eq(total, 0.0), ones({}, total.dtype(), total.device()), total));
}

// The largest of the length of x along an axis, and eps, which is kept.
Tensor length_at_least(const Tensor& x, int axis, double eps) {
  return sqrt(clamp(sum(square(x), {axis}, true), eps * eps, kUnlimited));
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const CrossEntropyOptions& o) {
  const CalledOp called("cross_entropy");
  check_float("cross_entropy", logits);
  check(logits.rank() >= 1, "cross_entropy", [&] { return str("needs logits (..., V), got ", logits.shape()); });
  return class_loss("cross_entropy", log_softmax(cast(logits, accumulate_type(logits.dtype()))), targets, o);
}

Tensor nll_loss(const Tensor& log_probabilities, const Tensor& targets, const CrossEntropyOptions& o) {
  const CalledOp called("nll_loss");
  check_float("nll_loss", log_probabilities);
  const DType type = log_probabilities.dtype();
  return cast(class_loss("nll_loss", cast(log_probabilities, accumulate_type(type)), targets, o), type);
}

Tensor mse_loss(const Tensor& x, const Tensor& y, Reduction reduction) {
  const CalledOp called("mse_loss");
  check_pair("mse_loss", x, y);
  return reduce_loss(square(sub(x, y)), reduction);
}

Tensor l1_loss(const Tensor& x, const Tensor& y, Reduction reduction) {
  const CalledOp called("l1_loss");
  check_pair("l1_loss", x, y);
  return reduce_loss(abs(sub(x, y)), reduction);
}

// c (e - c / 2) with e = x - y and c = e between -delta and delta: e^2 / 2 inside, delta (|e| - delta / 2) outside, and
// no product of 0 and infinity.
Tensor huber_loss(const Tensor& x, const Tensor& y, double delta, Reduction reduction) {
  const CalledOp called("huber_loss");
  check_pair("huber_loss", x, y);
  check_reach("huber_loss", "delta must be positive", delta, delta > 0);
  const Tensor e = sub(x, y), c = clamp(e, -delta, delta);
  return reduce_loss(mul(c, sub(e, c * 0.5)), reduction);
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& y, double beta, Reduction reduction) {
  const CalledOp called("smooth_l1_loss");
  check_reach("smooth_l1_loss", "beta must be at least 0", beta, beta >= 0);
  return beta == 0 ? l1_loss(x, y, reduction) : huber_loss(x, y, beta, reduction) / beta;
}

// (1 - t) x - (1 + (pos_weight - 1) t) log sigmoid(x)
Tensor bce_with_logits_loss(const Tensor& logits, const Tensor& targets, const BceOptions& o) {
  const CalledOp called("bce_with_logits_loss");
  check_pair("bce_with_logits_loss", logits, targets);
  const Tensor log_p = log_sigmoid(logits);
  const Tensor factor = o.pos_weight ? 1 + mul(o.pos_weight - 1, targets) : Tensor();
  Tensor loss = sub(mul(1 - targets, logits), factor ? mul(factor, log_p) : log_p);
  if (o.weight) loss = mul(loss, o.weight);
  check(loss.shape() == logits.shape(), "bce_with_logits_loss",
        [&] { return str("the weights must broadcast to the logits ", logits.shape(), ", got ", loss.shape()); });
  return reduce_loss(loss, o.reduction);
}

Tensor kl_div(const Tensor& log_p, const Tensor& targets, const KlDivOptions& o) {
  const CalledOp called("kl_div");
  check_pair("kl_div", log_p, targets);
  const DType type = log_p.dtype();
  const Tensor x = cast(log_p, accumulate_type(type)), t = cast(targets, accumulate_type(type));
  Tensor loss;
  if (o.log_target) {
    loss = mul(exp(t), sub(t, x));
  } else {
    const Tensor one = ones({}, t.dtype(), t.device());
    loss = mul(t, sub(log(where(eq(t, 0.0), one, t)), x));
  }
  if (!o.batch_mean) return cast(reduce_loss(loss, o.reduction), type);
  check(x.rank() >= 1, "kl_div", "the mean over a batch needs an axis of samples, got a scalar");
  return cast(sum(loss) / static_cast<double>(x.dim(0)), type);
}

Tensor hinge_loss(const Tensor& x, const Tensor& y, double margin, Reduction reduction) {
  const CalledOp called("hinge_loss");
  check_pair("hinge_loss", x, y);
  return reduce_loss(relu(margin - mul(x, y)), reduction);
}

Tensor cosine_similarity(const Tensor& x, const Tensor& y, int axis, double eps) {
  const CalledOp called("cosine_similarity");
  check_float("cosine_similarity", x);
  check_same("cosine_similarity", x, y);
  check_reach("cosine_similarity", "eps must be positive", eps, eps > 0);
  const DType wide = accumulate_type(x.dtype());
  const Shape shape = broadcast(x.shape(), y.shape(), "cosine_similarity");
  const int at = normal_axis(axis, shape.rank(), "cosine_similarity");
  const Tensor a = expand(cast(x, wide), shape), b = expand(cast(y, wide), shape);
  const Tensor unit_a = div(a, length_at_least(a, at, eps)), unit_b = div(b, length_at_least(b, at, eps));
  return cast(sum(mul(unit_a, unit_b), {at}), x.dtype());
}

Tensor cosine_embedding_loss(const Tensor& x, const Tensor& y, const Tensor& labels, double margin,
                             Reduction reduction) {
  const CalledOp called("cosine_embedding_loss");
  check_pair("cosine_embedding_loss", x, y);
  check(x.rank() == 2 && labels.shape() == Shape{x.dim(0)}, "cosine_embedding_loss",
        [&] { return str("needs pairs (B, D) and labels (B), got ", x.shape(), " and ", labels.shape()); });
  const Tensor c = cosine_similarity(x, y);
  return reduce_loss(where(gt(labels, 0.0), 1 - c, relu(c - margin)), reduction);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin,
                           Reduction reduction) {
  const CalledOp called("triplet_margin_loss");
  check_pair("triplet_margin_loss", anchor, positive);
  check_pair("triplet_margin_loss", anchor, negative);
  check(anchor.rank() >= 1, "triplet_margin_loss", "needs (..., D), got a scalar");
  const DType type = anchor.dtype(), wide = accumulate_type(type);
  const Tensor a = cast(anchor, wide);
  const auto distance = [&](const Tensor& y) { return sqrt(sum(square(sub(a, cast(y, wide)) + 1e-6), {-1})); };
  return cast(reduce_loss(relu(margin + sub(distance(positive), distance(negative))), reduction), type);
}

}  // namespace braid
