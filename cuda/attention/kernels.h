// The interface between the host side of DCMHA on tensor cores (tensor_core.cpp) and its kernels.
//
// A kernel computes one score block: some samples, some of their query rows and the unmasked keys of these rows. Scores
// and their gradients are bf16 (samples, N, rows, columns), column c being key first_key + c.
#pragma once
#include "braid/tensor/detail/integers.h"
#include "braid/tensor/dtype.h"

namespace braid::cuda::attention::tensor_core {

constexpr int kBlockKeys =
    128;  // keys of a block of threads: 8 warps with 16 each, which stay in registers while the rows stream by

struct ScoreBlock {
  int heads;                  // N: 16 or 32
  int samples, first_sample;  // samples first_sample, ...
  int rows, first_row;        // of `queries`
  int columns, first_key;     // multiples of 16
  int key_columns;            // the columns that are keys; those beyond hold finite values
  int queries, keys;          // T, S
  int begin_shift,
      end_shift;  // unmasked for row r: columns max(0, r + begin_shift) ... min(key_columns, r + end_shift) - 1
  int segments;   // blocks that share the rows of the same keys

  int key_blocks() const { return detail::ceil_div(columns, kBlockKeys); }
};

// Weights of one kind and token: N contiguous elements at data + sample, token, rank strides. May be absent.
struct Factor {
  const bfloat16* data;  // null: absent
  int64_t sample, token, rank;
};
struct Factors {  // of one compose and one side
  Factor down, up, gate;
  int rank;
};
struct Base {  // (N, N): heads read, heads written; null: absent
  const bfloat16* data;
  int64_t row;  // stride
};

// (samples, queries, N) from the block's first row on, of (B, queries, N).
inline const float* lse_of_block(const ScoreBlock& c, const float* lse) {
  return lse + (static_cast<int64_t>(c.first_sample) * c.queries + c.first_row) * c.heads;
}

// C(i) without the identity for the block's rows: bf16 (samples, rows, N, N).
void build_matrices(const ScoreBlock&, const Factors& query, const Base&, bfloat16* matrices);

// From scores, partial (largest, sum of exp(x - largest)) of x = compose(scores): (samples, rows, key_blocks, N) pairs;
// and their combination: lse (B, T, N).
void partial_log_sums(const ScoreBlock&, const Factors& key_pre, const bfloat16* scores, const bfloat16* pre,
                      float* partial);
void combine_log_sums(const ScoreBlock&, const float* partial, float* lse);

// weights = compose_post(exp(compose_pre(scores) - lse)) in place; pre and post from build_matrices.
void scores_to_weights(const ScoreBlock&, const Factors& key_pre, const Factors& key_post, const bfloat16* pre,
                       const bfloat16* post, const float* lse, bfloat16* scores);

// Sums over query rows that the backward kernels add to, f32. Key gradients, one part for each segment:
// (segments, samples, S, 5, N), in the order down 0, down 1, up 0, up 1, gate. Null: not required.
//
// Through post-compose. In: scores, d(weights). Out: weights; d(probabilities) in place of d(weights); partial sums
// over keys of (probability * d(probability), probability), (samples, rows, key_blocks, N) pairs, and of
// probability_n d(weight)_m, (samples, rows, key_blocks, N, N).
void backward_post(const ScoreBlock&, const Factors& key_pre, const Factors& key_post, const bfloat16* pre,
                   const bfloat16* post, const float* lse, const bfloat16* scores, bfloat16* d_weights,
                   bfloat16* weights, float* delta, float* outer_sum, float* d_keys);
// Through softmax and pre-compose. In: scores, d(probabilities), delta (samples, rows, N). Out: d(scores) in place
// of d(probabilities), partial sums of score_n d(composed score)_m.
void backward_pre(const ScoreBlock&, const Factors& key_pre, const bfloat16* pre, const float* lse, const float* delta,
                  const bfloat16* scores, bfloat16* d_probabilities, float* outer_sum, float* d_keys);

int64_t shared_bytes(int heads);  // of a block of backward_post, the largest of these kernels

// ---- from partial sums to gradients ----

void combine_delta(const ScoreBlock&, const float* partial, float* delta);
constexpr int kQueryBlockRows = 16;  // rows whose part of d(base) is summed in one place
struct QueryGradients {              // contiguous (B, T, rank, N), (B, T, N); null: not required
  bfloat16 *down, *up, *gate;
};
// outer_sum -> gradients of the query's weights; d_base (samples, ceil(rows / kQueryBlockRows), N, N) +=, null: not
// required.
void query_gradients(const ScoreBlock&, const Factors& query, const float* outer_sum, const QueryGradients&,
                     float* d_base);
// d_base (parts, N, N) summed over its parts.
void base_gradient(int heads, int parts, const float* d_base, bfloat16* gradient);
struct KeyGradients {  // contiguous (B, S, rank, N), (B, S, N); null: not required
  bfloat16 *down, *up, *gate;
  int rank;
};
void key_gradients(int heads, int segments, int64_t tokens, const float* d_keys, const KeyGradients&);

}  // namespace braid::cuda::attention::tensor_core
