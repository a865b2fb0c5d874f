// The interface between the host side of DCMHA on tensor cores (tensor_core.cpp) and its kernels.
//
// A kernel computes one score block: some samples, some of their query rows and the unmasked keys of these rows, cut
// into panels of consecutive rows with their own range of keys. Scores and their gradients are bf16; element (sample,
// head, panel, row, column) is that of key first_key + panel key_step + column.
#pragma once
#include "braid/tensor/base/integers.h"
#include "braid/tensor/dtype.h"

namespace braid::cuda::attention::tensor_core {

constexpr int kBlockKeys =
    128;  // keys of a block of threads: 8 warps with 16 each, which stay in registers while the rows stream by

struct ScoreBlock {
  int heads;                  // N: 16 or 32
  int samples, first_sample;  // samples first_sample, ...
  int rows, first_row;        // of `queries`
  int panels, panel_rows;     // the rows panel by panel; the last one may have fewer
  int first_key, key_step;    // multiples of 16; of a window the first keys may be negative, which are masked
  int columns, column_step;   // of panel p: columns + p column_step, at least 16 and at most pitch; multiples of 16
  int pitch;                  // elements from one row to the next, from one panel, from one head (of all samples)
  int panel_stride, head_stride;
  int queries, keys;           // T, S
  int begin_shift, end_shift;  // unmasked for row r of panel 0: columns r + begin_shift ... r + end_shift - 1 that are
                               // keys; columns beyond the keys hold finite values
  int segments;                // blocks of threads that share the rows of a panel and the same keys

  constexpr int columns_of(int panel) const {
    const int n = columns + panel * column_step;
    return n < 16 ? 16 : n < pitch ? n : pitch;
  }
  constexpr int first_key_of(int panel) const { return first_key + panel * key_step; }
  constexpr int rows_of(int panel) const {
    const int left = rows - panel * panel_rows;
    return left < panel_rows ? left : panel_rows;
  }
  constexpr int key_columns_of(int panel) const {  // those before the end of the keys
    const int n = columns_of(panel), left = keys - first_key_of(panel);
    return left < n ? left : n;
  }
  constexpr int shift_of(int panel) const { return panel * (panel_rows - key_step); }  // of begin_shift and end_shift
  constexpr int key_blocks() const { return detail::ceil_div(columns_of(panels - 1), kBlockKeys); }
  // Whether panels are windows: of equal shape, complete in memory up to their last row.
  constexpr bool windows() const { return key_step > 0; }
};

// ---- bytes of global memory that launches move ----

// Scores of all panels, as far as these have columns: written by a product or kernel.
int64_t scores_of(const ScoreBlock&);
// The scores that kernels pass over: of groups of rows in which a row has an unmasked key of a block of keys.
int64_t unmasked_scores_of(const ScoreBlock&);
// Scores that they read: with 16 heads only the pieces of 8 keys of which one is unmasked for the row.
int64_t copied_scores_of(const ScoreBlock&);

// Weights of one kind and token: N contiguous elements at data + sample, token, rank strides. May be absent.
struct Factor {
  const bfloat16* data;  // null: absent
  int64_t sample, token, rank;
  bool aligned;  // every token's elements begin at a multiple of 16 bytes
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

// C(i) without the identity for the block's rows, of pre-compose and of post-compose: bf16 (samples, rows, N, N) each.
struct QueryMixing {
  Factors query;
  Base base;
};
struct BothMixings {  // before and after softmax
  QueryMixing of[2];
  bfloat16* matrices[2];
};
void build_matrices(const ScoreBlock&, const BothMixings&);

// From scores, partial (largest, sum of exp(x - largest)) of x = compose(scores): (samples, rows, key_blocks, N) pairs;
// and their combination: lse (B, T, N).
void partial_log_sums(const ScoreBlock&, const Factors& key_pre, const bfloat16* scores, const bfloat16* pre,
                      float* partial);
void combine_log_sums(const ScoreBlock&, const float* partial, float* lse);

// weights = compose_post(exp(compose_pre(scores) - lse)) in place; pre and post from build_matrices.
void scores_to_weights(const ScoreBlock&, const Factors& key_pre, const Factors& key_post, const bfloat16* pre,
                       const bfloat16* post, const float* lse, bfloat16* scores);

// ---- forward in one kernel (one_pass_forward.cu) ----

constexpr int kOnePassHeads = 16, kOnePassDepth = 64, kOnePassRows = 32;  // N; the largest d; rows of a thread block

struct OnePass {
  int d, key_heads;  // a multiple of 8; Nkv
  int queries, keys;
  int first_sample, first_row, rows;
  int begin_shift, end_shift;  // unmasked for query t: keys t + begin_shift ... t + end_shift - 1
  float scale;
  // Strides of (B, T, N, d), d contiguous: even for y, otherwise multiples of 16 bytes, like addresses. Each is
  // less than 2^31, like the extent of a sample.
  const bfloat16 *q, *k, *v;
  bfloat16* y;
  int query_sample, query_token, query_head;
  int key_sample, key_token, key_head;  // of k and of v
  int y_sample, y_token, y_head;
  const bfloat16* key_factors;  // from pack_key_factors, of first_sample and those behind it
  const bfloat16 *pre, *post;   // from build_matrices
  float* lse;                   // (B, T, N); null: not required
};
// (samples, keys, 10, N): down 0, down 1, up 0, up 1 and gate before softmax, then those after it; zeros where absent.
void pack_key_factors(int first_sample, int samples, int keys, const Factors& pre, const Factors& post,
                      bfloat16* packed);
// y and lse for some rows of `samples` samples.
void one_pass_forward(const OnePass&, int samples);
int64_t one_pass_shared_bytes();

// Sums over query rows that the backward kernels write, f32. Key gradients, one part for each segment and panel:
// (segments, samples, panels, pitch, 5, N), in the order down 0, down 1, up 0, up 1, gate. Null: not required.
//
// Through post-compose. In: scores, d(weights). Out: weights; d(probabilities) in place of d(weights); partial sums
// over keys of (probability * d(probability), probability), (samples, rows, key_blocks, N) pairs, and of
// probability_n d(weight)_m, bf16 (samples, rows, key_blocks, N, N).
void backward_post(const ScoreBlock&, const Factors& key_pre, const Factors& key_post, const bfloat16* pre,
                   const bfloat16* post, const float* lse, const bfloat16* scores, bfloat16* d_weights,
                   bfloat16* weights, float* delta, bfloat16* outer_sum, float* d_keys);
// Through softmax and pre-compose. In: scores, d(probabilities), delta (samples, queries, N) from the block's
// first row on. Out: d(scores) in place
// of d(probabilities), partial sums of score_n d(composed score)_m.
void backward_pre(const ScoreBlock&, const Factors& key_pre, const bfloat16* pre, const float* lse, const float* delta,
                  const bfloat16* scores, bfloat16* d_probabilities, bfloat16* outer_sum, float* d_keys);

int64_t shared_bytes(int heads);  // of a block of backward_post, the largest of these kernels

// ---- from partial sums to gradients ----

// The partial sums of backward_post -> delta as backward_pre takes it.
void combine_delta(const ScoreBlock&, const float* partial, float* delta);
constexpr int kQueryBlockRows = 16;  // rows whose part of d(base) is summed in one place
struct QueryGradients {              // contiguous (B, T, rank, N), (B, T, N); null: not required
  bfloat16 *down, *up, *gate;
};
// outer_sum -> gradients of the query's weights; d_base (samples, ceil(rows / kQueryBlockRows), N, N) +=, null: not
// required.
void query_gradients(const ScoreBlock&, const Factors& query, const bfloat16* outer_sum, const QueryGradients&,
                     float* d_base);
// d_base (parts, N, N) summed over its parts.
void base_gradient(int heads, int parts, const float* d_base, bfloat16* gradient);
struct KeyGradients {  // contiguous (B, S, rank, N), (B, S, N); null: not required
  bfloat16 *down, *up, *gate;
  int rank;
};
struct KeyRange {
  int begin, end;
};
// The sums of d_keys over segments and panels for a range of keys of the block's samples, and, where it is not null,
// running (samples, S, 5, N). The result is running again, or with `to` the gradients.
void key_gradients(const ScoreBlock&, const float* d_keys, KeyRange keys, float* running, const KeyGradients* to);

}  // namespace braid::cuda::attention::tensor_core
