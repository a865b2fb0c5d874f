// The generic path, block by block of query rows: the scores of some rows and their unmasked keys, in the type of the
// inputs, between batched products.
//
//   forward    S = scale q k^T                              product
//              lse, then P' in place of S                   softmax_lse, scores_to_probabilities
//              y = P' v                                     product
//   backward   S again, P' beside it, d = dy v^T            product, scores_to_probabilities, product
//              dv += P'^T dy                                product
//              P in place of P'; gradients of post          scores_to_probabilities, outer_sum, key_gradients
//              d becomes dS'                                softmax_backward
//              gradients of pre; d becomes dS               outer_sum, key_gradients, compose
//              dq = scale dS k,  dk += scale dS^T q         product
//
// Sums over query rows (dk, dv, key factors, base) are added to block after block, always in the same order.
#include "braid/cuda/attention/generic.h"

#include <algorithm>
#include <limits>

#include "braid/cuda/matmul/matmul.h"

namespace braid::cuda::attention::generic {

namespace {

constexpr int64_t kMaxRows = 128;  // of a block: more would compute more masked pairs at its corner

DType sum_type(DType t) { return accumulate_type(t); }

// Bytes that a block takes for each sample and query row: `buffers` rows of scores and one outer sum.
struct RowCost {
  int64_t N, M, buffers, size;
  bool outer_sum;
  int64_t bytes(int64_t pitch) const {
    return N * (pitch * buffers * size + (outer_sum ? M * (size == 8 ? 8 : 4) : 0));
  }
};

int64_t pitch_of(int64_t keys) { return (keys + 7) / 8 * 8; }  // rows of 16-bit scores begin at 16 bytes

// As many rows, then samples, as fit; at least one row of one sample.
std::vector<ScoreBlock> blocks_of(const DcmhaInputs& x, const RowCost& cost, int64_t workspace) {
  const int64_t B = x.q.dim(0), T = x.q.dim(1), S = x.k.dim(1);
  const AttentionMask& mask = x.mask;
  int64_t rows = std::min(T, kMaxRows);
  auto max_keys = [&] {  // a window leaves a block of few rows few keys
    return mask.causal && mask.window > 0 ? std::min(S, mask.window + rows - 1) : S;
  };
  while (rows > 1 && rows * cost.bytes(pitch_of(max_keys())) > workspace) rows = (rows + 1) / 2;
  const int64_t samples = std::clamp<int64_t>(workspace / (rows * cost.bytes(pitch_of(max_keys()))), 1, B);
  std::vector<ScoreBlock> blocks;
  for (const QueryBlock& block : split_queries(B, T, S, mask, samples, rows))
    blocks.push_back({block, pitch_of(block.keys), T, S, x.groups, x.q.dim(2) / x.groups, mask});
  return blocks;
}

// One buffer for the largest block, viewed as the scores of any.
class Scores {
 public:
  Scores(const std::vector<ScoreBlock>& blocks, DType dtype, Device device) {
    int64_t largest = 0;
    for (const ScoreBlock& c : blocks) largest = std::max(largest, c.samples * c.G * c.M * c.rows * c.pitch);
    buffer_ = empty({largest}, dtype, device);
  }
  Tensor of(const ScoreBlock& c) const {  // (b, N, rows, keys)
    const int64_t N = c.G * c.M;
    return buffer_.view({c.samples, N, c.rows, c.keys}, {N * c.rows * c.pitch, c.rows * c.pitch, c.pitch, 1}, 0);
  }

 private:
  Tensor buffer_;
};

// Views of a block for `product`, with the heads that share a key/value head side by side: batch axes (b, Nkv, share).
struct Views {
  const ScoreBlock& c;
  int64_t share;

  Tensor of_queries(const Tensor& x) const {  // (B, T, N, d) -> (b, Nkv, share, rows, d)
    const Strides& s = x.strides();
    const int64_t N = x.dim(2);
    return x.sliced(0, c.b0, c.b0 + c.samples)
        .sliced(1, c.t0, c.t0 + c.rows)
        .view({c.samples, N / share, share, c.rows, x.dim(3)}, {s[0], share * s[2], s[2], s[1], s[3]}, 0);
  }
  Tensor of_keys(const Tensor& x) const {  // (B, S, Nkv, d) -> (b, Nkv, share, keys, d), repeated along share
    const Strides& s = x.strides();
    return x.sliced(0, c.b0, c.b0 + c.samples)
        .sliced(1, c.s0, c.s0 + c.keys)
        .view({c.samples, x.dim(2), share, c.keys, x.dim(3)}, {s[0], s[2], 0, s[1], s[3]}, 0);
  }
  Tensor of_scores(const Tensor& x) const {  // (b, N, rows, keys) -> (b, Nkv, share, rows, keys)
    const Strides& s = x.strides();
    return x.view({x.dim(0), x.dim(1) / share, share, x.dim(2), x.dim(3)}, {s[0], share * s[1], s[1], s[2], s[3]}, 0);
  }

  // sum += alpha x^T rows: x (b, N, rows, keys), rows (B, T, N, d), sum (B, S, Nkv, d). Heads that share a key/value
  // head are rows of one product, for which the part of `rows` is laid out with its heads first.
  void add_over_rows(const Tensor& x, const Tensor& rows, double alpha, const Tensor& sum) const {
    const int64_t b = c.samples, heads = x.dim(1) / share, d = rows.dim(3);
    const Strides& s = x.strides();
    Tensor left = x.view({b, heads, share * c.rows, c.keys}, {s[0], share * s[1], s[2], 1}, 0);
    Tensor right = of_queries(rows);
    const Strides& r = right.strides();
    right = share > 1 ? right.contiguous().reshaped({b, heads, share * c.rows, d})
                      : right.view({b, heads, c.rows, d}, {r[0], r[1], r[3], 1}, 0);
    const Strides& o = sum.strides();
    Tensor out = sum.sliced(0, c.b0, c.b0 + b)
                     .sliced(1, c.s0, c.s0 + c.keys)
                     .view({b, heads, c.keys, d}, {o[0], o[2], o[1], o[3]}, 0);
    matmul(left.transposed(), right, alpha, 1, out);
  }
};

// The key side with the keys last, as generic.h says: the threads of a block are neighbours along the keys.
HeadMixing keys_last(HeadMixing c) {
  for (Tensor* x : {&c.k_down, &c.k_up}) {
    if (*x) *x = x->permuted({0, 2, 3, 4, 1}).contiguous();
  }
  if (c.k_gate) c.k_gate = c.k_gate.permuted({0, 2, 3, 1}).contiguous();
  return c;
}

// sum_j a[m] d[n], (b, G, rows, M, M)
Tensor outer_sum(const ScoreBlock& c, const Tensor& a, const Tensor& d) {
  auto heads_inside = [&](const Tensor& x) {  // (b, N, rows, keys) -> (b, G, rows, M, keys)
    const Strides& s = x.strides();
    return x.view({c.samples, c.G, c.rows, c.M, c.keys}, {s[0], c.M * s[1], s[2], s[1], 1}, 0);
  };
  Tensor sum = empty({c.samples, c.G, c.rows, c.M, c.M}, sum_type(a.dtype()), a.device());
  matmul(heads_inside(a), heads_inside(d).transposed(), 1, 0, sum);
  return sum;
}

// The gradients of one stage while the blocks add to them; only those of the handles in `gradients`.
class StageGradients {
 public:
  StageGradients(const HeadMixing& stage, const HeadMixing& gradients) : stage_(stage), gradients_(gradients) {
    auto sum_like = [](const Tensor& x) {
      Tensor sum = empty(x.shape(), sum_type(x.dtype()), x.device());
      sum.fill(0);
      return sum;
    };
    if (gradients.base) sums_.base = sum_like(gradients.base);
    if (gradients.k_down || gradients.k_up) {
      sums_.k_down = sum_like(stage.k_down);
      sums_.k_up = sum_like(stage.k_up);
    }
    if (gradients.k_gate) sums_.k_gate = sum_like(stage.k_gate);
  }

  bool needs_outer_sum() const { return gradients_.base || gradients_.q_down || gradients_.q_up || gradients_.q_gate; }

  // Adds a block whose stage read a and has the gradient d.
  void add(const ScoreBlock& c, const Tensor& a, const Tensor& d) {
    if (needs_outer_sum()) {
      const Tensor sum = outer_sum(c, a, d);
      if (gradients_.q_down || gradients_.q_up || gradients_.q_gate) query_gradients(c, stage_, sum, gradients_);
      if (sums_.base) base_gradient(c, sum, sums_.base);
    }
    if (sums_.k_down || sums_.k_gate) key_gradients(c, stage_, a, d, sums_);
  }
  // A block whose keys are all masked: gradients of the query's weights are zero.
  void add_nothing(const ScoreBlock& c) {
    for (Tensor* x : {&gradients_.q_down, &gradients_.q_up, &gradients_.q_gate}) {
      if (*x) x->sliced(0, c.b0, c.b0 + c.samples).sliced(1, c.t0, c.t0 + c.rows).fill(0);
    }
  }
  void finish() {
    if (gradients_.base) gradients_.base.copy_(sums_.base);
    if (gradients_.k_down) gradients_.k_down.copy_(sums_.k_down.permuted({0, 4, 1, 2, 3}));
    if (gradients_.k_up) gradients_.k_up.copy_(sums_.k_up.permuted({0, 4, 1, 2, 3}));
    if (gradients_.k_gate) gradients_.k_gate.copy_(sums_.k_gate.permuted({0, 3, 1, 2}));
  }

 private:
  HeadMixing stage_, gradients_, sums_;
};

}  // namespace

void forward(const DcmhaInputs& x, Out y, Out lse, int64_t workspace) {
  const int64_t N = x.q.dim(2), size = size_of(x.q.dtype());
  const std::vector<ScoreBlock> blocks = blocks_of(x, {N, N / x.groups, 1, size, false}, workspace);
  Tensor sums = lse ? lse : empty({x.q.dim(0), x.q.dim(1), N}, sum_type(x.q.dtype()), x.q.device());
  const Scores buffer(blocks, x.q.dtype(), x.q.device());
  const HeadMixing pre = keys_last(x.pre), post = keys_last(x.post);
  for (const ScoreBlock& c : blocks) {
    const Views view{c, N / x.k.dim(2)};
    Tensor out = view.of_queries(y);
    if (c.keys == 0) {
      out.fill(0);
      sums.sliced(0, c.b0, c.b0 + c.samples)
          .sliced(1, c.t0, c.t0 + c.rows)
          .fill(std::numeric_limits<double>::infinity());
      continue;
    }
    Tensor scores = buffer.of(c), score_view = view.of_scores(scores);
    matmul(view.of_queries(x.q), view.of_keys(x.k).transposed(), x.scale, 0, score_view);
    softmax_lse(c, pre, scores, sums);
    scores_to_probabilities(c, pre, post, scores, sums, scores);
    matmul(score_view, view.of_keys(x.v), 1, 0, out);
  }
}

void backward(const DcmhaInputs& x, In lse, In dy, DcmhaGradients& gradients, int64_t workspace) {
  const int64_t N = x.q.dim(2), size = size_of(x.q.dtype());
  const HeadMixing pre = keys_last(x.pre), post = keys_last(x.post), post_transposed = transposed(post);
  const HeadMixing pre_transposed = transposed(pre);
  StageGradients of_pre(pre, gradients.pre), of_post(post, gradients.post);
  auto sum_for = [&](const Tensor& gradient) {  // f32 for 16-bit gradients, else the gradient itself
    if (!gradient) return gradient;
    Tensor sum = size == 2 ? empty(gradient.shape(), DType::f32, gradient.device()) : gradient;
    sum.fill(0);
    return sum;
  };
  const Tensor dk = sum_for(gradients.k), dv = sum_for(gradients.v);
  const std::vector<ScoreBlock> blocks =
      blocks_of(x, {N, N / x.groups, 3, size, of_pre.needs_outer_sum() || of_post.needs_outer_sum()}, workspace);
  const Scores score_buffer(blocks, x.q.dtype(), x.q.device()), weight_buffer(blocks, x.q.dtype(), x.q.device()),
      d_buffer(blocks, x.q.dtype(), x.q.device());
  Tensor sums = lse ? lse : empty({x.q.dim(0), x.q.dim(1), N}, sum_type(x.q.dtype()), x.q.device());
  const bool through_softmax = gradients.q || gradients.k || !gradients.pre.empty();
  for (const ScoreBlock& c : blocks) {
    const Views view{c, N / x.k.dim(2)};
    if (c.keys == 0) {
      if (gradients.q) view.of_queries(gradients.q).fill(0);
      of_pre.add_nothing(c);
      of_post.add_nothing(c);
      continue;
    }
    Tensor scores = score_buffer.of(c), weights = weight_buffer.of(c), d = d_buffer.of(c);
    Tensor score_view = view.of_scores(scores), d_view = view.of_scores(d);
    matmul(view.of_queries(x.q), view.of_keys(x.k).transposed(), x.scale, 0, score_view);
    matmul(view.of_queries(dy), view.of_keys(x.v).transposed(), 1, 0, d_view);
    if (!lse) softmax_lse(c, pre, scores, sums);
    if (dv) {
      scores_to_probabilities(c, pre, post, scores, sums, weights);
      view.add_over_rows(weights, dy, 1, dv);
    }
    if (!through_softmax && gradients.post.empty()) continue;
    if (!dv || !post.empty()) scores_to_probabilities(c, pre, {}, scores, sums, weights);
    of_post.add(c, weights, d);
    if (!through_softmax) continue;
    softmax_backward(c, post_transposed, weights, d);
    of_pre.add(c, scores, d);
    if (!pre.empty()) compose(c, pre_transposed, d);
    if (gradients.q) {
      Tensor dq = view.of_queries(gradients.q);
      matmul(d_view, view.of_keys(x.k), x.scale, 0, dq);
    }
    if (dk) view.add_over_rows(d, x.q, x.scale, dk);
  }
  of_pre.finish();
  of_post.finish();
  if (gradients.k && size == 2) gradients.k.copy_(dk);
  if (gradients.v && size == 2) gradients.v.copy_(dv);
}

}  // namespace braid::cuda::attention::generic
