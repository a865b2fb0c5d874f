// The host side of DCMHA on tensor cores: blocks of query rows, and batched products around the kernels of kernels.h.
//
//   forward    S = scale q k^T | partial_log_sums: lse | scores_to_weights: S -> P' | y = P' v
//   backward   S = scale q k^T, dP' = dy v^T | backward_post: P', dP' -> dP, delta | dv += P'^T dy
//              backward_pre: dP -> dS | dq = scale dS k, dk += scale dS^T q
#include "braid/cuda/attention/tensor_core.h"

#include <algorithm>
#include <vector>

#include "braid/cuda/attention/kernels.h"
#include "braid/cuda/matmul/matmul.h"
#include "braid/cuda/runtime/runtime.h"
#include "braid/tensor/detail/integers.h"

namespace braid::cuda::attention::tensor_core {

namespace {

// Query rows of a block: a causal one computes about half of its square in vain, one with a window as many keys as it
// has rows beyond the window; few rows, on the other hand, mean many small products.
constexpr int64_t kCausalRows = 256, kWindowRows = 128;
constexpr int64_t kTargetBlocks = 264;  // two for each multiprocessor of an H200

using detail::round_up;

// ---- the inputs as the kernels take them ----

Factor factor(const Tensor& x) {  // (B, positions, 1, R, N) or, for gates, (B, positions, 1, N)
  if (!x) return {};
  return {x.data<bfloat16>(), x.strides()[0], x.strides()[1], x.rank() == 5 ? x.strides()[3] : 0};
}
Factors query_factors(const HeadMixing& c) {
  return {factor(c.q_down), factor(c.q_up), factor(c.q_gate), c.q_down ? static_cast<int>(c.q_down.dim(3)) : 0};
}
Factors key_factors(const HeadMixing& c) {
  return {factor(c.k_down), factor(c.k_up), factor(c.k_gate), c.k_down ? static_cast<int>(c.k_down.dim(3)) : 0};
}
Base base(const HeadMixing& c) {
  return {c.base ? c.base.data<bfloat16>() : nullptr, c.base ? c.base.strides()[1] : 0};
}

// ---- blocks of query rows ----

struct Sizes {
  int64_t B, T, S, N, Nkv, d;
  explicit Sizes(const DcmhaInputs& x)
      : B(x.q.dim(0)), T(x.q.dim(1)), S(x.k.dim(1)), N(x.q.dim(2)), Nkv(x.k.dim(2)), d(x.q.dim(3)) {}
};

// Per query row: `buffers` rows of scores, and f32 partial sums of `sums` elements for each block of keys.
struct Cost {
  int64_t buffers, sums;
  int64_t bytes(int64_t heads, int64_t columns) const {
    const int64_t matrices = 4 * heads * heads;
    return 2 * buffers * heads * columns + 4 * sums * (columns / kBlockKeys + 1) + matrices;
  }
};

std::vector<ScoreBlock> blocks_of(const DcmhaInputs& x, const Cost& cost, int64_t workspace) {
  const Sizes n(x);
  const AttentionMask& mask = x.mask;
  const bool windowed = mask.causal && mask.window > 0;
  const auto columns_of = [&](int64_t rows) {  // the largest number that a block can need
    return windowed ? std::min(round_up(n.S, 16), round_up(mask.window + rows + 16, 16)) : round_up(n.S, 16);
  };
  int64_t rows = std::min(n.T, windowed ? kWindowRows : mask.causal ? kCausalRows : n.T);
  const auto bytes = [&] { return rows * cost.bytes(n.N, columns_of(rows)); };
  const auto elements = [&] {  // of the largest buffer, for each sample
    const int64_t columns = columns_of(rows);
    return n.N * std::max(rows * std::max(columns, n.N * (columns / kBlockKeys + 1)), n.T);
  };
  constexpr int64_t limit = (int64_t{1} << 31) - 1;  // the kernels count in 32 bits
  while (rows > 4 && (bytes() > workspace || elements() > limit)) rows = round_up(rows / 2, 4);
  const int64_t samples =
      std::clamp<int64_t>(std::min(workspace / bytes(), limit / elements()), 1, std::min<int64_t>(n.B, 65535));

  const int64_t T = n.T, S = n.S, max_shift = T + S;
  const int64_t begin_shift = windowed ? mask.offset - mask.window + 1 : -T;
  const int64_t end_shift = mask.causal ? mask.offset + 1 : S;
  std::vector<ScoreBlock> blocks;
  for (const QueryBlock& block : split_queries(n.B, T, S, mask, samples, rows)) {
    const int64_t end = std::max<int64_t>(1, block.s0 + block.keys);  // at least one tile, even if it is masked
    const int64_t begin = std::min(block.s0, end - 1) / 16 * 16;
    ScoreBlock c{};
    c.heads = static_cast<int>(n.N);
    c.samples = static_cast<int>(block.samples);
    c.first_sample = static_cast<int>(block.b0);
    c.rows = static_cast<int>(block.rows);
    c.first_row = static_cast<int>(block.t0);
    c.columns = static_cast<int>(round_up(end - begin, 16));
    c.first_key = static_cast<int>(begin);
    c.queries = static_cast<int>(T);
    c.keys = static_cast<int>(S);
    c.key_columns = static_cast<int>(std::min<int64_t>(c.columns, S - begin));
    c.begin_shift = static_cast<int>(std::clamp(begin_shift + block.t0 - begin, -max_shift, max_shift));
    c.end_shift = static_cast<int>(std::clamp(end_shift + block.t0 - begin, -max_shift, max_shift));
    const int64_t groups = (c.rows * n.N + 63) / 64;  // of rows that the kernels take at a time
    c.segments = static_cast<int>(std::clamp<int64_t>(kTargetBlocks / (int64_t{c.key_blocks()} * c.samples), 1,
                                                      std::max<int64_t>(1, groups / 8)));
    blocks.push_back(c);
  }
  return blocks;
}

int64_t keys_end(const ScoreBlock& c) { return c.first_key + c.key_columns; }

// The maximum of a number per block.
template <class F>
int64_t max_over(const std::vector<ScoreBlock>& blocks, F&& number) {
  int64_t result = 0;
  for (const ScoreBlock& c : blocks) result = std::max<int64_t>(result, number(c));
  return result;
}

// ---- heads first in memory ----

// x (B, T, N, d): whether samples and heads are one batch axis of a product, as where memory is that of a contiguous
// (B, N, T, d).
bool heads_first(const Tensor& x) {
  const Strides& s = x.strides();
  return s[3] == 1 && s[1] >= x.dim(3) && (x.dim(0) == 1 || s[0] == x.dim(2) * s[2]);
}
Tensor empty_heads_first(const Shape& s, DType dtype, Device device) {
  return empty({s[0], s[2], s[1], s[3]}, dtype, device).permuted({0, 2, 1, 3});
}
// x, or a copy of it.
Tensor to_heads_first(const Tensor& x) {
  if (heads_first(x)) return x;
  Tensor copy = empty_heads_first(x.shape(), x.dtype(), x.device());
  copy.copy_(x);
  return copy;
}
// A tensor that products write in place of `result`, and the copy to it at the end.
Tensor heads_first_result(const Tensor& result) {
  return heads_first(result) ? result : empty_heads_first(result.shape(), result.dtype(), result.device());
}
void copy_result(const Tensor& from, Tensor& result) {
  if (!heads_first(result)) result.copy_(from);
}

// ---- views for products: batch axes (samples, key/value heads, query heads of each) ----

// Rows [begin, end) of the block's samples of x (B, P, heads, d) -> (samples, Nkv, N / Nkv, P', d).
Tensor heads_of(const Tensor& x, const Sizes& n, const ScoreBlock& c, int64_t begin, int64_t end) {
  const Strides& s = x.strides();
  const int64_t share = n.N / n.Nkv, step = x.dim(2) == n.N ? s[2] : 0;
  return x.view({c.samples, n.Nkv, share, end - begin, n.d},
                {s[0], x.dim(2) == n.N ? share * s[2] : s[2], step, s[1], s[3]}, c.first_sample * s[0] + begin * s[1]);
}
Tensor queries_of(const Tensor& x, const Sizes& n, const ScoreBlock& c) {
  return heads_of(x, n, c, c.first_row, c.first_row + c.rows);
}
Tensor keys_of(const Tensor& x, const Sizes& n, const ScoreBlock& c) {
  return heads_of(x, n, c, c.first_key, keys_end(c));
}

// The scores of any block in one buffer.
class Scores {
 public:
  Scores(const std::vector<ScoreBlock>& blocks, const Sizes& n, Device device)
      : n_(n),
        buffer_(empty({max_over(blocks, [&](const ScoreBlock& c) { return c.samples * n.N * c.rows * c.columns; })},
                      DType::bf16, device)) {}
  bfloat16* data() { return buffer_.mutable_data<bfloat16>(); }
  Tensor of(const ScoreBlock& c) const { return part(c, 0, c.key_columns); }  // (..., rows, keys)
  // alpha x z, with zeros in the columns beyond the last key.
  void product_of(const ScoreBlock& c, In x, In z, double alpha) const {
    Tensor y = of(c);
    matmul(x, z, alpha, 0, y);
    if (c.key_columns < c.columns) part(c, c.key_columns, c.columns).fill(0);
  }

 private:
  Tensor part(const ScoreBlock& c, int64_t begin, int64_t end) const {
    const int64_t head = int64_t{c.rows} * c.columns, share = n_.N / n_.Nkv;
    return buffer_.view({c.samples, n_.Nkv, share, c.rows, end - begin},
                        {n_.N * head, share * head, head, c.columns, 1}, begin);
  }
  const Sizes n_;
  Tensor buffer_;
};

// The matrices of the query rows, before and after softmax: all that depends on the query alone.
class Matrices {
 public:
  Matrices(const std::vector<ScoreBlock>& blocks, const Sizes& n, Device device)
      : size_(max_over(blocks, [&](const ScoreBlock& c) { return c.samples * int64_t{c.rows} * n.N * n.N; })),
        buffer_(empty({2 * size_}, DType::bf16, device)) {}
  bfloat16* pre() { return buffer_.mutable_data<bfloat16>(); }
  bfloat16* post() { return pre() + size_; }
  void build(const ScoreBlock& c, const DcmhaInputs& x) {
    build_matrices(c, query_factors(x.pre), base(x.pre), pre());
    build_matrices(c, query_factors(x.post), base(x.post), post());
  }

 private:
  int64_t size_;
  Tensor buffer_;
};

Tensor f32_buffer(int64_t size, Device device) { return empty({size}, DType::f32, device); }

// Elements of a partial sum with `each` values for every row and block of keys.
auto partial_size(int64_t each) {
  return [each](const ScoreBlock& c) { return each * c.samples * c.rows * c.key_blocks(); };
}

// ---- gradients that are sums over query rows ----
//
// The blocks of some samples follow each other, so sums over their rows are kept, in f32, for these samples only.

bool begins_samples(const ScoreBlock& c) { return c.first_row == 0; }
bool ends_samples(const ScoreBlock& c) { return c.first_row + c.rows == c.queries; }

bfloat16* data_or_null(Tensor& x) { return x ? x.mutable_data<bfloat16>() : nullptr; }
bfloat16* at_or_null(Tensor& x, int64_t sample) {
  return x ? x.mutable_data<bfloat16>() + sample * x.strides()[0] : nullptr;
}

// Of one compose.
class ComposeGradients {
 public:
  ComposeGradients(const std::vector<ScoreBlock>& blocks, const Sizes& n, const HeadMixing& inputs,
                   HeadMixing& gradients, Device device)
      : n_(n), query_(query_factors(inputs)), key_rank_(key_factors(inputs).rank), to_(gradients) {
    if (to_.k_down || to_.k_up || to_.k_gate) {
      segments_ = max_over(blocks, [](const ScoreBlock& c) { return c.segments; });
      keys_ = f32_buffer(segments_ * max_over(blocks, [&](const ScoreBlock& c) { return c.samples * n.S * 5 * n.N; }),
                         device);
    }
    if (to_.base) {
      parts_ =
          max_over(blocks, [](const ScoreBlock& c) { return c.samples * detail::ceil_div(c.rows, kQueryBlockRows); });
      base_ = zeros({parts_, n.N, n.N}, DType::f32, device);
    }
  }
  // The sums for keys, to which the block's kernel adds.
  float* keys(const ScoreBlock& c) {
    if (!keys_) return nullptr;
    if (begins_samples(c)) keys_.fill(0);
    return keys_.mutable_data<float>();
  }
  // After the block's kernel.
  void add(const ScoreBlock& c, const float* gram) {
    if (to_.q_down || to_.q_up || to_.q_gate || to_.base) {
      query_gradients(c, query_, gram, {data_or_null(to_.q_down), data_or_null(to_.q_up), data_or_null(to_.q_gate)},
                      base_ ? base_.mutable_data<float>() : nullptr);
    }
    if (keys_ && ends_samples(c)) {
      const KeyGradients to{at_or_null(to_.k_down, c.first_sample), at_or_null(to_.k_up, c.first_sample),
                            at_or_null(to_.k_gate, c.first_sample), key_rank_};
      key_gradients(c.heads, static_cast<int>(segments_), c.samples * n_.S, keys_.data<float>(), to);
    }
  }
  void finish() {
    if (base_)
      base_gradient(static_cast<int>(n_.N), static_cast<int>(parts_), base_.data<float>(),
                    to_.base.mutable_data<bfloat16>());
  }

 private:
  const Sizes n_;
  const Factors query_;
  const int key_rank_;
  HeadMixing& to_;
  int64_t segments_ = 0, parts_ = 0;
  Tensor keys_, base_;
};

// Gradient of keys or of values: (B, S, Nkv, d), a sum over blocks and over the query heads of a key/value head.
class KeySum {
 public:
  KeySum(const std::vector<ScoreBlock>& blocks, Tensor& gradient, const Sizes& n) : n_(n), gradient_(gradient) {
    const int64_t samples = max_over(blocks, [](const ScoreBlock& c) { return c.samples; });
    if (gradient) sum_ = empty_heads_first({samples, n.S, n.Nkv, n.d}, DType::f32, gradient.device());
  }
  // += alpha scores^T x, scores (..., rows, keys), x (..., rows, d) of all query heads
  void add(const ScoreBlock& c, const Tensor& scores, const Tensor& x, double alpha) {
    if (!gradient_) return;
    if (begins_samples(c)) sum_.fill(0);
    const Strides& s = sum_.strides();
    Tensor to = sum_.view({c.samples, n_.Nkv, c.key_columns, n_.d}, {s[0], s[2], s[1], 1}, c.first_key * s[1]);
    for (int64_t i = 0; i < n_.N / n_.Nkv; ++i)
      matmul(scores.transposed().sliced(2, i, i + 1).squeezed(2), x.sliced(2, i, i + 1).squeezed(2), alpha, 1, to);
    if (ends_samples(c))
      gradient_.sliced(0, c.first_sample, c.first_sample + c.samples).copy_(sum_.sliced(0, 0, c.samples));
  }

 private:
  const Sizes n_;
  Tensor& gradient_;
  Tensor sum_;
};

}  // namespace

std::optional<std::string> unsupported_reason(const DcmhaInputs& x) {
  const Sizes n(x);
  if (x.q.dtype() != DType::bf16) return "the tensor-core kernels need bf16, the queries are " + str(x.q.dtype());
  // These kernels would mix by the identity. The generic path, for M = 1, passes over the scores as often (5 times
  // forward, 13 instead of 12 times backward, two of them through the cache) and computes only softmax.
  if (x.pre.empty() && x.post.empty()) return "no heads are mixed";
  if (x.groups != 1) return "the tensor-core kernels mix all heads, here are " + std::to_string(x.groups) + " groups";
  if (n.N != 16 && n.N != 32) return "the tensor-core kernels need 16 or 32 heads, here are " + std::to_string(n.N);
  for (const HeadMixing* c : {&x.pre, &x.post}) {
    if (c->k_down && c->k_down.dim(3) > 2)
      return "the tensor-core kernels need key factors of rank 2 at most, here is rank " +
             std::to_string(c->k_down.dim(3));
  }
  if (x.q.numel() == 0 || x.k.numel() == 0) return "there are no elements";
  for (const Tensor* t : {&x.q, &x.k, &x.v}) {
    for (int axis = 0; axis < 4; ++axis) {
      if (axis == 3 ? n.d % 2 != 0 : t->strides()[axis] % 2 != 0)
        return "the tensor-core kernels need an even head size and even strides, here are d = " + std::to_string(n.d) +
               " and strides " + str(t->strides());
    }
  }
  if (properties().shared_bytes < shared_bytes(static_cast<int>(n.N)))
    return "the tensor-core kernels need " + std::to_string(shared_bytes(static_cast<int>(n.N))) +
           " bytes of shared memory for a block, this GPU has " + std::to_string(properties().shared_bytes);
  if (n.T + n.S >= 1 << 24)
    return "the tensor-core kernels count in 32 bits, here are " + str(x.q.shape()) + " queries";
  return std::nullopt;
}

void forward(const DcmhaInputs& x, Out y, Out lse, int64_t workspace) {
  const Sizes n(x);
  const Device device = x.q.device();
  const std::vector<ScoreBlock> blocks = blocks_of(x, {.buffers = 1, .sums = 2 * n.N}, workspace);
  Scores scores(blocks, n, device);
  Matrices matrices(blocks, n, device);
  Tensor partial = f32_buffer(max_over(blocks, partial_size(2 * n.N)), device);
  Tensor sums = lse ? lse : f32_buffer(n.B * n.T * n.N, device);
  const Factors pre = key_factors(x.pre), post = key_factors(x.post);
  const Tensor q = to_heads_first(x.q), k = to_heads_first(x.k), v = to_heads_first(x.v), out = heads_first_result(y);
  for (const ScoreBlock& c : blocks) {
    scores.product_of(c, queries_of(q, n, c), keys_of(k, n, c).transposed(), x.scale);
    matrices.build(c, x);
    partial_log_sums(c, pre, scores.data(), matrices.pre(), partial.mutable_data<float>());
    combine_log_sums(c, partial.data<float>(), sums.mutable_data<float>());
    scores_to_weights(c, pre, post, matrices.pre(), matrices.post(), sums.data<float>(), scores.data());
    Tensor to = queries_of(out, n, c);
    matmul(scores.of(c), keys_of(v, n, c), 1, 0, to);
  }
  copy_result(out, y);
}

void backward(const DcmhaInputs& x, In, In lse, In dy, DcmhaGradients& gradients, int64_t workspace) {
  const Sizes n(x);
  const Device device = x.q.device();
  const std::vector<ScoreBlock> blocks = blocks_of(x, {.buffers = 3, .sums = n.N * n.N + 2 * n.N}, workspace);
  Scores scores(blocks, n, device), weights(blocks, n, device), d_scores(blocks, n, device);
  Matrices matrices(blocks, n, device);
  Tensor partial = f32_buffer(max_over(blocks, partial_size(2 * n.N)), device);
  Tensor gram = f32_buffer(max_over(blocks, partial_size(n.N * n.N)), device);
  Tensor delta = f32_buffer(max_over(blocks, [&](const ScoreBlock& c) { return c.samples * c.rows * n.N; }), device);
  const Factors pre = key_factors(x.pre), post = key_factors(x.post);
  ComposeGradients d_pre(blocks, n, x.pre, gradients.pre, device), d_post(blocks, n, x.post, gradients.post, device);
  KeySum dk(blocks, gradients.k, n), dv(blocks, gradients.v, n);
  const bool through_softmax = gradients.q || gradients.k || !gradients.pre.empty();
  const Tensor all_q = to_heads_first(x.q), all_k = to_heads_first(x.k), v = to_heads_first(x.v);
  const Tensor all_dy = to_heads_first(dy);
  const Tensor dq = gradients.q ? heads_first_result(gradients.q) : Tensor();
  for (const ScoreBlock& c : blocks) {
    const Tensor q = queries_of(all_q, n, c), k = keys_of(all_k, n, c), d_out = queries_of(all_dy, n, c);
    scores.product_of(c, q, k.transposed(), x.scale);
    d_scores.product_of(c, d_out, keys_of(v, n, c).transposed(), 1);
    matrices.build(c, x);
    backward_post(c, pre, post, matrices.pre(), matrices.post(), lse.data<float>(), scores.data(), d_scores.data(),
                  weights.data(), partial.mutable_data<float>(), gram.mutable_data<float>(), d_post.keys(c));
    d_post.add(c, gram.data<float>());
    dv.add(c, weights.of(c), d_out, 1);
    if (!through_softmax) continue;
    combine_delta(c, partial.data<float>(), delta.mutable_data<float>());
    backward_pre(c, pre, matrices.pre(), lse.data<float>(), delta.data<float>(), scores.data(), d_scores.data(),
                 gram.mutable_data<float>(), d_pre.keys(c));
    d_pre.add(c, gram.data<float>());
    if (gradients.q) {
      Tensor to = queries_of(dq, n, c);
      matmul(d_scores.of(c), k, x.scale, 0, to);
    }
    dk.add(c, d_scores.of(c), q, x.scale);
  }
  if (dq) copy_result(dq, gradients.q);
  d_pre.finish();
  d_post.finish();
}

}  // namespace braid::cuda::attention::tensor_core
