// Attention on the card: which kernels serve a call, and the general way, chunk by chunk.
//
//   a few query rows, no derivative wanted    cuda/attention/decode.cu
//   bf16 or f16, no heads mixed               cuda/attention/sdpa_cudnn.h, cuDNN where it is there
//   bf16, 16 or 32 heads mixed                cuda/attention/tensor_core.h, on tensor cores
//   everything else                           the general way
//
// The general way holds the scores of some query rows and the keys that they can see, in the type of the inputs:
//
//   forward    S = scale q k^T                              product
//              lse, then P' in place of S                   normalise, weigh
//              y = P' v                                     product
//   backward   S again, P' beside it, d = dy v^T            product, weigh, product
//              dv += P'^T dy                                product
//              P in place of P'; gradients of post          weigh, gram, key_gradients
//              d becomes dS'                                softmax_backward
//              gradients of pre; d becomes dS               gram, key_gradients, compose
//              dq = scale dS k,  dk += scale dS^T q         product
//
// Sums over query rows (dk, dv, key factors, base) are added to chunk after chunk, always in the same order.
#include "braid/cuda/attention/generic.h"

#include <algorithm>
#include <limits>

#include "braid/cuda/attention/sdpa_cudnn.h"
#include "braid/cuda/attention/tensor_core.h"
#include "braid/cuda/matmul/matmul.h"

namespace braid::cuda {

namespace {

using dcmha::Chunk;

constexpr int64_t kMostRows = 128;  // of a chunk: more would compute more hidden pairs at its corner

int64_t workspace_of(const DcmhaInputs& x) { return x.workspace > 0 ? x.workspace : kDcmhaWorkspace; }

DType sum_type(DType t) { return accumulate_type(t); }

// Bytes that a chunk takes for each sample and query row: `buffers` rows of scores and one gram.
struct RowCost {
  int64_t N, M, buffers, size;
  bool gram;
  int64_t bytes(int64_t pitch) const { return N * (pitch * buffers * size + (gram ? M * (size == 8 ? 8 : 4) : 0)); }
};

int64_t pitch_of(int64_t keys) { return (keys + 7) / 8 * 8; }  // rows of 16-bit scores begin at 16 bytes

// As many rows, then samples, as fit; at least one row of one sample.
std::vector<Chunk> chunks_of(const DcmhaInputs& x, const RowCost& cost) {
  const int64_t B = x.q.dim(0), T = x.q.dim(1), S = x.k.dim(1);
  const AttentionMask& visible = x.visible;
  const int64_t limit = workspace_of(x);
  int64_t rows = std::min(T, kMostRows);
  auto widest = [&] {  // a window shows a chunk of few rows few keys
    return visible.causal && visible.window > 0 ? std::min(S, visible.window + rows - 1) : S;
  };
  while (rows > 1 && rows * cost.bytes(pitch_of(widest())) > limit) rows = (rows + 1) / 2;
  const int64_t samples = std::clamp<int64_t>(limit / (rows * cost.bytes(pitch_of(widest()))), 1, B);
  std::vector<Chunk> chunks;
  for (int64_t b0 = 0; b0 < B; b0 += samples) {
    for (int64_t t0 = 0; t0 < T; t0 += rows) {
      const int64_t t1 = std::min(T, t0 + rows), s1 = visible.end(t1 - 1, S), s0 = std::min(visible.first(t0), s1);
      chunks.push_back({.b0 = b0,
                        .samples = std::min(samples, B - b0),
                        .t0 = t0,
                        .rows = t1 - t0,
                        .s0 = s0,
                        .keys = s1 - s0,
                        .pitch = pitch_of(s1 - s0),
                        .T = T,
                        .S = S,
                        .G = x.groups,
                        .M = x.q.dim(2) / x.groups,
                        .visible = visible});
    }
  }
  return chunks;
}

// One buffer for the largest chunk, seen as the scores of any.
class Scores {
 public:
  Scores(const std::vector<Chunk>& chunks, DType dtype, Device device) {
    int64_t most = 0;
    for (const Chunk& c : chunks) most = std::max(most, c.samples * c.G * c.M * c.rows * c.pitch);
    buffer_ = empty({most}, dtype, device);
  }
  Tensor of(const Chunk& c) const {  // (b, N, rows, keys)
    const int64_t N = c.G * c.M;
    return buffer_.view({c.samples, N, c.rows, c.keys}, {N * c.rows * c.pitch, c.rows * c.pitch, c.pitch, 1}, 0);
  }

 private:
  Tensor buffer_;
};

// Views of a chunk for `product`, with the heads that share a key/value head side by side: batch axes (b, Nkv, share).
struct Views {
  const Chunk& c;
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
  // head are rows of one product, for which the chunk of `rows` is laid out with its heads first.
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
    product(left.transposed(), right, alpha, 1, out);
  }
};

// The key side with the keys last, as dcmha.h says: the threads of a block are neighbours along the keys.
Compose keys_last(Compose c) {
  for (Tensor* x : {&c.k_down, &c.k_up}) {
    if (*x) *x = x->permuted({0, 2, 3, 4, 1}).contiguous();
  }
  if (c.k_gate) c.k_gate = c.k_gate.permuted({0, 2, 3, 1}).contiguous();
  return c;
}

// gram[m,n] = sum_j a[m] d[n], (b, G, rows, M, M)
Tensor gram_of(const Chunk& c, const Tensor& a, const Tensor& d) {
  auto heads_inside = [&](const Tensor& x) {  // (b, N, rows, keys) -> (b, G, rows, M, keys)
    const Strides& s = x.strides();
    return x.view({c.samples, c.G, c.rows, c.M, c.keys}, {s[0], c.M * s[1], s[2], s[1], 1}, 0);
  };
  Tensor gram = empty({c.samples, c.G, c.rows, c.M, c.M}, sum_type(a.dtype()), a.device());
  product(heads_inside(a), heads_inside(d).transposed(), 1, 0, gram);
  return gram;
}

// The gradients of one stage while the chunks add to them.
class StageGradients {
 public:
  StageGradients(const Compose& stage, const Compose& wanted) : stage_(stage), wanted_(wanted) {
    auto sum_like = [](const Tensor& x) {
      Tensor sum = empty(x.shape(), sum_type(x.dtype()), x.device());
      sum.fill(0);
      return sum;
    };
    if (wanted.base) sums_.base = sum_like(wanted.base);
    if (wanted.k_down || wanted.k_up) {
      sums_.k_down = sum_like(stage.k_down);
      sums_.k_up = sum_like(stage.k_up);
    }
    if (wanted.k_gate) sums_.k_gate = sum_like(stage.k_gate);
  }

  bool needs_gram() const { return wanted_.base || wanted_.q_down || wanted_.q_up || wanted_.q_gate; }

  // Of a chunk whose stage read a and has the gradient d.
  void add(const Chunk& c, const Tensor& a, const Tensor& d) {
    if (needs_gram()) {
      const Tensor gram = gram_of(c, a, d);
      if (wanted_.q_down || wanted_.q_up || wanted_.q_gate) dcmha::query_gradients(c, stage_, gram, wanted_);
      if (sums_.base) dcmha::base_gradient(c, gram, sums_.base);
    }
    if (sums_.k_down || sums_.k_gate) dcmha::key_gradients(c, stage_, a, d, sums_);
  }
  // Of a chunk whose rows see nothing.
  void nothing(const Chunk& c) {
    for (Tensor* x : {&wanted_.q_down, &wanted_.q_up, &wanted_.q_gate}) {
      if (*x) x->sliced(0, c.b0, c.b0 + c.samples).sliced(1, c.t0, c.t0 + c.rows).fill(0);
    }
  }
  void finish() {
    if (wanted_.base) wanted_.base.copy_(sums_.base);
    if (wanted_.k_down) wanted_.k_down.copy_(sums_.k_down.permuted({0, 4, 1, 2, 3}));
    if (wanted_.k_up) wanted_.k_up.copy_(sums_.k_up.permuted({0, 4, 1, 2, 3}));
    if (wanted_.k_gate) wanted_.k_gate.copy_(sums_.k_gate.permuted({0, 3, 1, 2}));
  }

 private:
  Compose stage_, wanted_, sums_;
};

// Also of gradients, where down may be wanted without up.
bool any(const Compose& c) { return c.base || c.q_down || c.q_up || c.k_down || c.k_up || c.q_gate || c.k_gate; }

// Heads that are not mixed are as many groups: more blocks, less memory for each.
DcmhaInputs split(DcmhaInputs x) {
  if (!any(x.pre) && !any(x.post)) x.groups = x.q.dim(2);
  return x;
}

void forward_in_chunks(const DcmhaInputs& x, Tensor y, Tensor lse) {
  const int64_t N = x.q.dim(2), size = size_of(x.q.dtype());
  const std::vector<Chunk> chunks = chunks_of(x, {N, N / x.groups, 1, size, false});
  const Scores buffer(chunks, x.q.dtype(), x.q.device());
  const Compose pre = keys_last(x.pre), post = keys_last(x.post);
  for (const Chunk& c : chunks) {
    const Views view{c, N / x.k.dim(2)};
    Tensor out = view.of_queries(y);
    if (c.keys == 0) {
      out.fill(0);
      lse.sliced(0, c.b0, c.b0 + c.samples)
          .sliced(1, c.t0, c.t0 + c.rows)
          .fill(std::numeric_limits<double>::infinity());
      continue;
    }
    Tensor scores = buffer.of(c), score_view = view.of_scores(scores);
    product(view.of_queries(x.q), view.of_keys(x.k).transposed(), x.scale, 0, score_view);
    dcmha::normalise(c, pre, scores, lse);
    dcmha::weigh(c, pre, post, scores, lse, scores);
    product(score_view, view.of_keys(x.v), 1, 0, out);
  }
}

void backward_in_chunks(const DcmhaInputs& x, const Tensor& lse, const Tensor& dy, DcmhaGradients& gradients) {
  const int64_t N = x.q.dim(2), size = size_of(x.q.dtype());
  const Compose pre = keys_last(x.pre), post = keys_last(x.post), post_transposed = dcmha::transposed(post);
  const Compose pre_transposed = dcmha::transposed(pre);
  StageGradients of_pre(pre, gradients.pre), of_post(post, gradients.post);
  auto sum_for = [&](const Tensor& wanted) {  // f32 for 16-bit gradients, else the gradient itself
    if (!wanted) return wanted;
    Tensor sum = size == 2 ? empty(wanted.shape(), DType::f32, wanted.device()) : wanted;
    sum.fill(0);
    return sum;
  };
  const Tensor dk = sum_for(gradients.k), dv = sum_for(gradients.v);
  const std::vector<Chunk> chunks =
      chunks_of(x, {N, N / x.groups, 3, size, of_pre.needs_gram() || of_post.needs_gram()});
  const Scores score_buffer(chunks, x.q.dtype(), x.q.device()), weight_buffer(chunks, x.q.dtype(), x.q.device()),
      d_buffer(chunks, x.q.dtype(), x.q.device());
  const bool through_softmax = gradients.q || gradients.k || any(gradients.pre);
  for (const Chunk& c : chunks) {
    const Views view{c, N / x.k.dim(2)};
    if (c.keys == 0) {
      if (gradients.q) view.of_queries(gradients.q).fill(0);
      of_pre.nothing(c);
      of_post.nothing(c);
      continue;
    }
    Tensor scores = score_buffer.of(c), weights = weight_buffer.of(c), d = d_buffer.of(c);
    Tensor score_view = view.of_scores(scores), d_view = view.of_scores(d);
    product(view.of_queries(x.q), view.of_keys(x.k).transposed(), x.scale, 0, score_view);
    product(view.of_queries(dy), view.of_keys(x.v).transposed(), 1, 0, d_view);
    if (dv) {
      dcmha::weigh(c, pre, post, scores, lse, weights);
      view.add_over_rows(weights, dy, 1, dv);
    }
    if (!through_softmax && !any(gradients.post)) continue;
    if (!dv || any(post)) dcmha::weigh(c, pre, {}, scores, lse, weights);
    of_post.add(c, weights, d);
    if (!through_softmax) continue;
    dcmha::softmax_backward(c, post_transposed, weights, d);
    of_pre.add(c, scores, d);
    if (any(pre)) dcmha::compose(c, pre_transposed, d);
    if (gradients.q) {
      Tensor dq = view.of_queries(gradients.q);
      product(d_view, view.of_keys(x.k), x.scale, 0, dq);
    }
    if (dk) view.add_over_rows(d, x.q, x.scale, dk);
  }
  of_pre.finish();
  of_post.finish();
  if (gradients.k && size == 2) gradients.k.copy_(dk);
  if (gradients.v && size == 2) gradients.v.copy_(dv);
}

}  // namespace

static std::string dcmha_refuses(const DcmhaInputs& x) {
  return dcmha_fast::refuses(x).empty() ? "" : dcmha::refuses(split(x));
}

static void dcmha_forward(const DcmhaInputs& x, Out y, Out lse) {
  if (!lse && dcmha::decodes(split(x))) {
    dcmha::decode(split(x), y);
  } else if (plain_attention::forward(x, y, lse).empty()) {
    return;
  } else if (dcmha_fast::refuses(x).empty()) {
    dcmha_fast::forward(x, y, lse, workspace_of(x));
  } else {
    Tensor sums = lse ? lse : empty({x.q.dim(0), x.q.dim(1), x.q.dim(2)}, sum_type(x.q.dtype()), x.q.device());
    forward_in_chunks(split(x), y, sums);
  }
}

static void dcmha_backward(const DcmhaInputs& x, In y, In lse, In dy, DcmhaGradients& gradients) {
  if (plain_attention::backward(x, y, lse, dy, gradients, workspace_of(x)).empty()) return;
  if (dcmha_fast::refuses(x).empty()) {
    dcmha_fast::backward(x, y, lse, dy, gradients, workspace_of(x));
  } else {
    backward_in_chunks(split(x), lse, dy, gradients);
  }
}

constinit const AttentionKernels attention_kernels{
    .forward = dcmha_forward,
    .backward = dcmha_backward,
    .unsupported_reason = dcmha_refuses,
    .takes_16_bits = true,
};

}  // namespace braid::cuda
