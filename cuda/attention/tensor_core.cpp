// The host side of DCMHA on tensor cores: blocks of query rows, and batched products around the kernels of kernels.h.
//
//   forward    of 16 heads of at most 64 elements: y by one_pass_forward; otherwise
//              S = scale q k^T | partial_log_sums: lse | scores_to_weights: S -> P' | y = P' v
//   backward   S = scale q k^T, dP' = dy v^T | backward_post: P', dP' -> dP, delta | dv += P'^T dy
//              backward_pre: dP -> dS | dq = scale dS k, dk += scale dS^T q
#include "braid/cuda/attention/tensor_core.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "braid/cuda/attention/kernels.h"
#include "braid/cuda/attention/score_products.h"
#include "braid/cuda/runtime/runtime.h"
#include "braid/tensor/base/integers.h"

namespace braid::cuda::attention::tensor_core {

namespace {

// ---- the inputs as the kernels take them ----

Factor factor(const Tensor& x) {  // (B, positions, 1, R, N) or, for gates, (B, positions, 1, N)
  if (!x) return {};
  Factor f{x.data<bfloat16>(), x.strides()[0], x.strides()[1], x.rank() == 5 ? x.strides()[3] : 0, false};
  f.aligned = std::bit_cast<uintptr_t>(f.data) % 16 == 0 && (f.sample | f.token | f.rank) % 8 == 0;
  return f;
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

// The matrices of the query rows, before and after softmax: all that depends on the query alone.
class Matrices {
 public:
  Matrices(const std::vector<ScoreBlock>& blocks, const Sizes& n, Device device)
      : size_(max_over(blocks, [&](const ScoreBlock& c) { return c.samples * int64_t{c.rows} * n.N * n.N; })),
        buffer_(empty({2 * size_}, DType::bf16, device)) {}
  bfloat16* pre() { return buffer_.mutable_data<bfloat16>(); }
  bfloat16* post() { return pre() + size_; }
  void build(const ScoreBlock& c, const DcmhaInputs& x) {
    build_matrices(c, {{{query_factors(x.pre), base(x.pre)}, {query_factors(x.post), base(x.post)}}, {pre(), post()}});
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

// ---- gradients of the mixing weights ----

bfloat16* data_or_null(Tensor& x) { return x ? x.mutable_data<bfloat16>() : nullptr; }

// The gradients of one compose. The blocks of some samples follow each other: sums over their rows are kept, in f32,
// for these samples only.
class ComposeGradients {
 public:
  ComposeGradients(const std::vector<ScoreBlock>& blocks, const Sizes& n, const HeadMixing& inputs,
                   HeadMixing& gradients, Device device)
      : n_(n), query_(query_factors(inputs)), key_rank_(key_factors(inputs).rank), to_(gradients) {
    if (to_.k_down || to_.k_up || to_.k_gate) {
      keys_ = f32_buffer(
          5 * n.N *
              max_over(blocks,
                       [](const ScoreBlock& c) { return int64_t{c.segments} * c.samples * c.panels * c.pitch; }),
          device);
      const auto in_several = [](const ScoreBlock& c) { return c.rows < c.queries ? c.samples : 0; };
      if (const int64_t samples = max_over(blocks, in_several)) running_ = f32_buffer(samples * n.S * 5 * n.N, device);
    }
    if (to_.base) {
      parts_ =
          max_over(blocks, [](const ScoreBlock& c) { return c.samples * detail::ceil_div(c.rows, kQueryBlockRows); });
      base_ = zeros({parts_, n.N, n.N}, DType::f32, device);
    }
  }
  // The sums for keys, which the block's kernel writes.
  float* keys() { return keys_ ? keys_.mutable_data<float>() : nullptr; }
  // After the block's kernel.
  void add(const ScoreBlock& c, const bfloat16* outer_sum) {
    if (to_.q_down || to_.q_up || to_.q_gate || to_.base) {
      query_gradients(c, query_, outer_sum,
                      {data_or_null(to_.q_down), data_or_null(to_.q_up), data_or_null(to_.q_gate)},
                      base_ ? base_.mutable_data<float>() : nullptr);
    }
    if (!keys_) return;
    if (running_ && begins_samples(c)) running_.fill(0);
    float* const running = running_ ? running_.mutable_data<float>() : nullptr;
    const KeyGradients to{data_or_null(to_.k_down), data_or_null(to_.k_up), data_or_null(to_.k_gate), key_rank_};
    if (ends_samples(c)) {
      key_gradients(c, keys(), {0, c.keys}, running, &to);
    } else {
      key_gradients(c, keys(), {c.first_key, keys_end(c)}, running, nullptr);
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
  int64_t parts_ = 0;
  Tensor keys_, running_, base_;
};

// ---- forward in one kernel ----

bool in_one_pass(const Sizes& n) {
  return n.N == kOnePassHeads && n.d <= kOnePassDepth && n.d % 8 == 0 && n.B <= 65535 &&
         std::max(n.T, n.S) * n.N * n.d < int64_t{1} << 30 && properties().shared_bytes >= one_pass_shared_bytes();
}

// Rows that begin at multiples of 16 bytes, in samples and strides of fewer than 2^31 elements.
bool in_pieces(const Tensor& x) {
  const Strides& s = x.strides();
  bool fits = std::bit_cast<uintptr_t>(x.data<bfloat16>()) % 16 == 0;
  int64_t last = 0;
  for (int axis = 0; axis < x.rank() - 1; ++axis) {
    fits = fits && (x.dim(axis) == 1 || s[axis] % 8 == 0);
    if (axis > 0) last += (x.dim(axis) - 1) * s[axis];
  }
  return fits && std::max(last, s[0]) < (int64_t{1} << 31) - kOnePassDepth;
}
Tensor dense_copy(const Tensor& x) {
  Tensor copy = empty(x.shape(), x.dtype(), x.device());
  copy.copy_(x);
  return copy;
}

void forward_in_one_pass(const DcmhaInputs& x, Out y, Out lse, int64_t workspace) {
  const Sizes n(x);
  const Tensor q = in_pieces(x.q) ? x.q : dense_copy(x.q);
  // The kernel has one set of strides for k and v.
  const bool alike = in_pieces(x.k) && in_pieces(x.v) && x.k.strides() == x.v.strides();
  const Tensor k = alike ? x.k : dense_copy(x.k), v = alike ? x.v : dense_copy(x.v);
  const bool direct = in_pieces(y);
  Tensor to = direct ? y : empty(y.shape(), y.dtype(), y.device());
  const int64_t max_shift = n.T + n.S;
  const auto narrow = [](int64_t i) { return static_cast<int>(i); };
  OnePass c{.d = narrow(n.d),
            .key_heads = narrow(n.Nkv),
            .queries = narrow(n.T),
            .keys = narrow(n.S),
            .begin_shift = narrow(x.mask.causal && x.mask.window > 0
                                      ? std::clamp(x.mask.offset - x.mask.window + 1, -max_shift, max_shift)
                                      : -max_shift),
            .end_shift = narrow(x.mask.causal ? std::clamp(x.mask.offset + 1, -max_shift, max_shift) : max_shift),
            .scale = static_cast<float>(x.scale),
            .q = q.data<bfloat16>(),
            .k = k.data<bfloat16>(),
            .v = v.data<bfloat16>(),
            .y = to.mutable_data<bfloat16>(),
            .query_sample = narrow(q.strides()[0]),
            .query_token = narrow(q.strides()[1]),
            .query_head = narrow(q.strides()[2]),
            .key_sample = narrow(k.strides()[0]),
            .key_token = narrow(k.strides()[1]),
            .key_head = narrow(k.strides()[2]),
            .y_sample = narrow(to.strides()[0]),
            .y_token = narrow(to.strides()[1]),
            .y_head = narrow(to.strides()[2]),
            .lse = lse ? lse.mutable_data<float>() : nullptr};
  // As many rows at a time as the workspace holds matrices of.
  const int64_t fitting = std::max<int64_t>(kOnePassRows, workspace / (4 * n.N * n.N) / kOnePassRows * kOnePassRows);
  const int64_t samples = std::clamp<int64_t>(fitting / n.T, 1, n.B), rows = std::min(n.T, fitting);
  const int64_t size = samples * rows * n.N * n.N;
  Tensor matrices = empty({2, size}, DType::bf16, x.q.device());
  Tensor factors = empty({samples, n.S, 10, n.N}, DType::bf16, x.q.device());
  bfloat16* const pre = matrices.mutable_data<bfloat16>();
  c.pre = pre;
  c.post = pre + size;
  c.key_factors = factors.data<bfloat16>();
  for (int64_t sample = 0; sample < n.B; sample += samples) {
    ScoreBlock block{};
    block.heads = narrow(n.N);
    block.first_sample = c.first_sample = narrow(sample);
    block.samples = narrow(std::min(samples, n.B - sample));
    pack_key_factors(block.first_sample, block.samples, c.keys, key_factors(x.pre), key_factors(x.post),
                     factors.mutable_data<bfloat16>());
    for (int64_t row = 0; row < n.T; row += rows) {
      block.first_row = c.first_row = narrow(row);
      block.rows = c.rows = narrow(std::min(rows, n.T - row));
      build_matrices(block,
                     {{{query_factors(x.pre), base(x.pre)}, {query_factors(x.post), base(x.post)}}, {pre, pre + size}});
      one_pass_forward(c, block.samples);
    }
  }
  if (!direct) y.copy_(to);
}

}  // namespace

std::optional<std::string> unsupported_reason(const DcmhaInputs& x) {
  const Sizes n(x);
  if (x.q.dtype() != DType::bf16) return str("the tensor-core kernels need bf16, the queries are ", x.q.dtype());
  // These kernels would mix by the identity. The generic path, for M = 1, passes over the scores as often (5 times
  // forward, 13 instead of 12 times backward, two of them through the cache) and computes only softmax.
  if (x.pre.empty() && x.post.empty()) return "no heads are mixed";
  if (x.groups != 1) return str("the tensor-core kernels mix all heads, here are ", x.groups, " groups");
  if (n.N != 16 && n.N != 32) return str("the tensor-core kernels need 16 or 32 heads, here are ", n.N);
  for (const HeadMixing* c : {&x.pre, &x.post}) {
    if (c->k_down && c->k_down.dim(3) > 2)
      return str("the tensor-core kernels need key factors of rank 2 at most, here is rank ", c->k_down.dim(3));
  }
  if (x.q.numel() == 0 || x.k.numel() == 0) return "there are no elements";
  for (const Tensor* t : {&x.q, &x.k, &x.v}) {
    for (int axis = 0; axis < 4; ++axis) {
      if (axis == 3 ? n.d % 2 != 0 : t->strides()[axis] % 2 != 0)
        return str("the tensor-core kernels need an even head size and even strides, here are d = ", n.d,
                   " and strides ", t->strides());
    }
  }
  if (properties().shared_bytes < shared_bytes(static_cast<int>(n.N)))
    return str("the tensor-core kernels need ", shared_bytes(static_cast<int>(n.N)),
               " bytes of shared memory for a block, this GPU has ", properties().shared_bytes);
  if (n.T + n.S >= 1 << 24) return str("the tensor-core kernels count in 32 bits, here are ", x.q.shape(), " queries");
  return std::nullopt;
}

void forward(const DcmhaInputs& x, Out y, Out lse, int64_t workspace) {
  const Sizes n(x);
  if (in_one_pass(n)) return forward_in_one_pass(x, y, lse, workspace);
  const Device device = x.q.device();
  const std::vector<ScoreBlock> blocks = blocks_of(x, {.buffers = 1, .row_sums = 8 * n.N, .key_sums = 0}, workspace);
  Scores scores(blocks, n, device);
  Matrices matrices(blocks, n, device);
  Tensor partial = f32_buffer(max_over(blocks, partial_size(2 * n.N)), device);
  Tensor sums = lse ? lse : f32_buffer(n.B * n.T * n.N, device);
  const Factors pre = key_factors(x.pre), post = key_factors(x.post);
  const std::vector<HeadRows> in = operands({x.q, x.k, x.v}, n, blocks[0]);
  HeadRowsResult out(y, n, blocks[0]);
  for (const ScoreBlock& c : blocks) {
    scores.product(c, in[0], in[1], x.scale);
    matrices.build(c, x);
    partial_log_sums(c, pre, scores.data(), matrices.pre(), partial.mutable_data<float>());
    combine_log_sums(c, partial.data<float>(), sums.mutable_data<float>());
    scores_to_weights(c, pre, post, matrices.pre(), matrices.post(), sums.data<float>(), scores.data());
    scores.times_keys(c, in[2], 1, out.rows());
  }
  out.finish(n);
}

void backward(const DcmhaInputs& x, In, In lse, In dy, DcmhaGradients& gradients, int64_t workspace) {
  const Sizes n(x);
  const Device device = x.q.device();
  const std::vector<ScoreBlock> blocks =
      blocks_of(x, {.buffers = 3, .row_sums = 2 * n.N * n.N + 8 * n.N, .key_sums = 20 * n.N}, workspace);
  Scores scores(blocks, n, device), weights(blocks, n, device), d_scores(blocks, n, device);
  Matrices matrices(blocks, n, device);
  Tensor partial = f32_buffer(max_over(blocks, partial_size(2 * n.N)), device);
  Tensor outer_sum = empty({max_over(blocks, partial_size(n.N * n.N))}, DType::bf16, device);
  Tensor delta = f32_buffer(max_over(blocks, [&](const ScoreBlock& c) { return c.samples * n.T * n.N; }), device);
  const Factors pre = key_factors(x.pre), post = key_factors(x.post);
  ComposeGradients d_pre(blocks, n, x.pre, gradients.pre, device), d_post(blocks, n, x.post, gradients.post, device);
  const std::vector<HeadRows> in = operands({x.q, x.k, x.v, dy}, n, blocks[0]);
  const HeadRows &q = in[0], &k = in[1], &v = in[2], &d_out = in[3];
  KeySum dk(blocks, gradients.k, n), dv(blocks, gradients.v, n);
  HeadRowsResult dq = gradients.q ? HeadRowsResult(gradients.q, n, blocks[0]) : HeadRowsResult();
  const bool through_softmax = gradients.q || gradients.k || !gradients.pre.empty();
  bfloat16* const outer = outer_sum.mutable_data<bfloat16>();
  for (const ScoreBlock& c : blocks) {
    scores.product(c, q, k, x.scale);
    d_scores.product(c, d_out, v, 1);
    matrices.build(c, x);
    backward_post(c, pre, post, matrices.pre(), matrices.post(), lse.data<float>(), scores.data(), d_scores.data(),
                  weights.data(), partial.mutable_data<float>(), outer, d_post.keys());
    d_post.add(c, outer);
    if (gradients.v) weights.end_windows(c);
    dv.add(c, weights, d_out, 1);
    if (!through_softmax) continue;
    combine_delta(c, partial.data<float>(), delta.mutable_data<float>());
    backward_pre(c, pre, matrices.pre(), lse.data<float>(), delta.data<float>(), scores.data(), d_scores.data(), outer,
                 d_pre.keys());
    d_pre.add(c, outer);
    if (gradients.q) d_scores.times_keys(c, k, x.scale, dq.rows());
    if (gradients.k) d_scores.end_windows(c);
    dk.add(c, d_scores, q, x.scale);
  }
  dq.finish(n);
  dk.finish();
  dv.finish();
  d_pre.finish();
  d_post.finish();
}

}  // namespace braid::cuda::attention::tensor_core
