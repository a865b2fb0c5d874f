// Attention composed of primitive ops: the definition that every fused kernel is tested against. The formula stands at
// the head of autograd/dcmha.h. Scores are kept as (B, G, M, T, S): head n = g M + m.
#include "braid/autograd/ops/attention_reference.h"

#include <limits>

#include "braid/autograd/math.h"
#include "braid/autograd/ops.h"

namespace braid {

namespace {

// (B, T, N, d) -> (B, G, M, T, d)
Tensor heads_first(const Tensor& x, int64_t groups) {
  int64_t heads = x.dim(2);
  return permute(reshape(x, {x.dim(0), x.dim(1), groups, heads / groups, x.dim(3)}), {0, 2, 3, 1, 4});
}

// A side's factors (B, P, G, R, M) -> (B, G, R, M, P), the position last.
Tensor position_last(const Tensor& w) { return contiguous(permute(w, {0, 2, 3, 4, 1})); }

// sum_r (sum_m A[m] down[r,m]) up[r,n];  A (B, G, 1, M, T, S), down and up (B, G, R, M, T or 1, 1 or S)
Tensor low_rank(const Tensor& scores, const Tensor& down, const Tensor& up) {
  Tensor hidden = sum_product(scores, down, {3});  // (B, G, R, 1, T, S)
  return squeeze(sum_product(hidden, up, {2}), 2);
}

// O of the formula, A = scores (B, G, M, T, S); without any term A itself
Tensor compose(const Tensor& scores, const HeadMixing& c) {
  Tensor out = scores;
  if (c.base) {  // sum_m A[m] base[m,n] = (base^T A)[n] over flattened pairs
    const Shape& s = scores.shape();
    Tensor flat = reshape(scores, {s[0], s[1], s[2], s[3] * s[4]});
    out = add(out, reshape(matmul(transpose(c.base), flat), s));
  }
  Tensor wide = unsqueeze(scores, 2);  // (B, G, 1, M, T, S)
  if (c.q_down) {
    Tensor down = unsqueeze(position_last(c.q_down), 5), up = unsqueeze(position_last(c.q_up), 5);
    out = add(out, low_rank(wide, down, up));
  }
  if (c.k_down) {
    Tensor down = unsqueeze(position_last(c.k_down), 4), up = unsqueeze(position_last(c.k_up), 4);
    out = add(out, low_rank(wide, down, up));
  }
  if (c.q_gate) out = add(out, mul(scores, unsqueeze(permute(c.q_gate, {0, 2, 3, 1}), 4)));
  if (c.k_gate) out = add(out, mul(scores, unsqueeze(contiguous(permute(c.k_gate, {0, 2, 3, 1})), 3)));
  return out;
}

// Grouped key/value heads: head n reads key/value head n / (N / Nkv).
Tensor repeat_heads(const Tensor& x, int64_t heads) {
  if (x.dim(2) == heads) return x;
  int64_t times = heads / x.dim(2);
  Tensor wide = expand(unsqueeze(x, 3), {x.dim(0), x.dim(1), x.dim(2), times, x.dim(3)});
  return reshape(wide, {x.dim(0), x.dim(1), heads, x.dim(3)});
}

struct GroupedMaps {
  Tensor scores, scores_composed, probs, probs_composed;  // (B, G, M, T, S)
};

// (1 or B, 1 or N, T, S) -> (1 or B, 1 or G, 1 or M, T, S)
Tensor grouped(const Tensor& x, int64_t groups) {
  if (x.dim(1) == 1) return unsqueeze(x, 1);
  return reshape(x, {x.dim(0), groups, x.dim(1) / groups, x.dim(2), x.dim(3)});
}

GroupedMaps grouped_maps(const DcmhaInputs& x, const AttentionExtras& extras) {
  const double masked = -std::numeric_limits<double>::infinity();
  const Tensor queries = heads_first(scale(x.q, x.scale), x.groups);         // (B, G, M, T, d)
  const Tensor keys = heads_first(repeat_heads(x.k, x.q.dim(2)), x.groups);  // (B, G, M, S, d)
  Tensor scores = matmul(queries, transpose(keys));                          // (B, G, M, T, S)
  if (extras.softcap > 0) scores = softcap(scores, extras.softcap);
  const Tensor bias = extras.bias ? grouped(extras.bias, x.groups) : Tensor();
  const bool before = extras.bias_place == BiasPlace::before_compose;
  if (bias && before) scores = add(scores, bias);
  Tensor composed = compose(scores, x.pre);
  if (bias && !before) composed = add(composed, bias);
  composed = mask_scores(composed, x.mask, masked);
  const Tensor excluded = extras.attend ? eq(grouped(extras.attend, x.groups), 0.0) : Tensor();
  if (excluded) composed = masked_fill(composed, excluded, masked);
  const Tensor probs = softmax(composed);
  Tensor probs_composed = compose(probs, x.post);
  if (excluded && extras.attend.dim(1) > 1) probs_composed = masked_fill(probs_composed, excluded, 0);
  if (bias && !x.post.empty()) probs_composed = masked_fill(probs_composed, eq(bias, masked), 0);
  if (extras.dropped)
    probs_composed = scale(masked_fill(probs_composed, grouped(extras.dropped, x.groups), 0), 1 / (1 - extras.dropout));
  return {scores, composed, probs, probs_composed};
}

}  // namespace

Tensor attention_reference(const DcmhaInputs& x, const AttentionExtras& extras) {
  const Tensor values = heads_first(repeat_heads(x.v, x.q.dim(2)), x.groups);  // (B, G, M, S, dv)
  const Tensor y = matmul(grouped_maps(x, extras).probs_composed, values);     // (B, G, M, T, dv)
  return reshape(permute(y, {0, 3, 1, 2, 4}), {x.q.dim(0), x.q.dim(1), x.q.dim(2), x.v.dim(3)});
}

AttentionMaps reference_maps(const DcmhaInputs& x, const AttentionExtras& extras) {
  const GroupedMaps maps = grouped_maps(x, extras);
  const Shape all_heads = {x.q.dim(0), x.q.dim(2), x.q.dim(1), x.k.dim(1)};
  const auto flat = [&](const Tensor& map) { return reshape(map, all_heads); };
  const Tensor scores = mask_scores(flat(maps.scores), x.mask, -std::numeric_limits<double>::infinity());
  return {scores, flat(maps.scores_composed), flat(maps.probs), flat(maps.probs_composed)};
}

}  // namespace braid
