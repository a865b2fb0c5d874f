// DCMHA backward between the batched products: B1, through post-compose, and B2, through softmax and pre-compose.
//
// Both recompute the probabilities P from the scores. With out = compose(in) as in dcmha_tile.cuh,
// g_r = sum_m up_rm d_out_m and h_r = sum_n down_rn in_n,
//   d_in = d_out (1 + gate) + sum_r down_r g_r + d_out C(i)^T
//   d_down_r += g_r in      d_up_r += h_r d_out      d_gate += in d_out        (of a key: sums over queries)
// and the gradients of the query's weights all follow from sum over keys of in_n d_out_m, a product of two tiles.
// Softmax: d(composed score) = P (dP - delta), delta = sum over keys of P dP.
#include "cuda/kernel.h"
// (kernel.h first: the headers below use its words)
#include "cuda/dcmha_stream.cuh"

namespace braid::cuda::dcmha_fast {
namespace {

template <int N>
struct KeySums {
  Wide<N> down[2], up[2], gate;

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int c = 0; c < N / 8; ++c) {
#pragma unroll
      for (int q = 0; q < 4; ++q) down[0][c][q] = down[1][c][q] = up[0][c][q] = up[1][c][q] = gate[c][q] = 0;
    }
  }
  __device__ __forceinline__ void add(const Wide<N>& in, const Wide<N>& d_out, const float (&h)[2][4],
                                      const float (&g)[2][4]) {
#pragma unroll
    for (int c = 0; c < N / 8; ++c) {
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        gate[c][q] = fmaf(in[c][q], d_out[c][q], gate[c][q]);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          up[r][c][q] = fmaf(h[r][q & 2], d_out[c][q], up[r][c][q]);
          down[r][c][q] = fmaf(g[r][q & 2], in[c][q], down[r][c][q]);
        }
      }
    }
  }
  // d_keys (segments, samples, keys, 5, N) += the warp's sums.
  __device__ __forceinline__ void add_to(float* d_keys, const Chunk& c, const Place<N>& at) const {
    if (d_keys == nullptr || !at.active(c)) return;
    const size_t sample = blockIdx.y * gridDim.z + blockIdx.z;
    d_keys += (sample * c.keys + c.first_key) * (5 * N);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int key = at.column + at.lane / 4 + 8 * half;
      if (c.first_key + key >= c.keys) continue;
      float* const to = d_keys + key * (5 * N) + at.lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < N / 8; ++n) {
        const Wide<N>* const parts[5] = {&down[0], &down[1], &up[0], &up[1], &gate};
#pragma unroll
        for (int k = 0; k < 5; ++k) {
          float2& pair = *reinterpret_cast<float2*>(to + k * N + 8 * n);
          const float(&part)[4] = (*parts[k])[n];
          pair = {pair.x + part[2 * half], pair.y + part[2 * half + 1]};
        }
      }
    }
  }
};

// gram (samples, rows, key_blocks, N, N): sum over the block's keys of x_n y_m. Each row has 8 / kRows warps, each of
// which makes 16 x 128 / N of it; warps 0 ... 7 hold the block's keys.
template <int N, class Part>
__device__ __forceinline__ void multiply_rows(float* gram, const Part (&x)[kWarps], const Part (&y)[kWarps],
                                              const Chunk& c, const Place<N>& at, int row0) {
  constexpr int shares = kWarps / kRows<N>, columns = N * N / 16 / shares;  // 8 (N = 16) or 16 (N = 32)
  const unsigned warp = threadIdx.x / 32, r = warp / shares, share = warp % shares;
  const unsigned n0 = N == 16 ? 0 : share / 2 * 16, m0 = share % 2 * columns;
  const unsigned row = static_cast<unsigned>(row0) + r;
  if (row >= static_cast<unsigned>(c.rows)) return;
  float sum[columns / 8][4] = {};
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    uint32_t rows[4], b[columns / 4];  // heads 0-7 and 8-15, of keys 0-7 and of keys 8-15 each
    ldmatrix(rows, x[w].row[r] + n0 * kTilePitch + tile_row(at.lane));
    ldmatrix(b, y[w].row[r] + m0 * kTilePitch + tile_row(at.lane));
    const uint32_t a[4] = {rows[0], rows[2], rows[1], rows[3]};
#pragma unroll
    for (int k = 0; k < columns / 8; ++k) mma_bf16(sum[k], a, b[2 * k], b[2 * k + 1]);
  }
  float* const to =
      gram + (static_cast<size_t>(blockIdx.z * static_cast<unsigned>(c.rows) + row) * gridDim.x + blockIdx.x) * (N * N);
#pragma unroll
  for (int k = 0; k < columns / 8; ++k) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const unsigned n = n0 + threadIdx.x % 32 / 4 + 8 * half, m = m0 + 8 * k + threadIdx.x % 4 * 2;
      *reinterpret_cast<float2*>(to + n * N + m) = {sum[k][2 * half], sum[k][2 * half + 1]};
    }
  }
}

template <int N>
struct PostMemory {
  Group<N, 2, 2, 1> group[2];                  // scores, later probabilities, and d(weights)
  bfloat16 result[kWarps][2][N * kTilePitch];  // of a row: weights, d(probabilities)
  float delta[kWarps][kRows<N>][N];
};

template <int N>
__global__ void __launch_bounds__(kThreads, 1)
    dcmha_backward_post(Chunk c, Factors key_pre, Factors key_post, const bfloat16* pre, const bfloat16* post,
                        const float* lse, const bfloat16* scores, bfloat16* d_weights, bfloat16* weights, float* delta,
                        float* gram, float* d_keys) {
  PostMemory<N>& memory = *dynamic_shared<PostMemory<N>>();
  const Place<N> at(c);
  const float* const row_lse = lse + (static_cast<size_t>(c.first_sample + at.sample) * c.queries + c.first_row) * N;
  const size_t matrices = static_cast<size_t>(at.sample) * c.rows * N * N;
  scores = at.of_sample(scores, c);
  d_weights = at.of_sample(d_weights, c);
  weights = at.of_sample(weights, c);
  zero_unseen_rows<N>(weights, c, at);
  zero_unseen_rows<N>(d_weights, c, at);
  KeyWeights<N> weights_pre, weights_post;
  load_weights(weights_pre, key_pre, c, at);
  load_weights(weights_post, key_post, c, at);
  KeySums<N> sums;
  sums.clear();
  bfloat16* const result = memory.result[at.warp][0];
  bfloat16* const d_result = memory.result[at.warp][1];

  stream<N>(memory.group, c, at, {{scores, d_weights}, {pre + matrices, post + matrices}, {row_lse}},
            [&](int row0, Group<N, 2, 2, 1>& group) {
#pragma unroll 1
              for (int r = 0; r < kRows<N> && row0 + r < c.rows; ++r) {
                bfloat16* const tile = group.tile[0][at.warp].row[r] + tile_row(at.lane);
                if constexpr (N == 32) {
                  weights_pre.stay_packed();
                  weights_post.stay_packed();
                }
                const Seen seen = at.seen(c, row0 + r);
                Packed<N> a{}, d{};
                float part[N / 4] = {};
                if (seen.none()) {
                  store_tile<N>(tile, a);
                } else {
                  Wide<N> x, dx;
                  float h[2][4], g[2][4];
                  load_tile<N>(a, tile);
                  unpack<N>(x, a);
                  compose_forward<N>(x, a, group.matrix[0][r], at.lane, weights_pre, h);
                  exponentials<N>(x, group.statistic[0][r], at.lane);
                  hide<N>(x, seen, at.lane, 0);
                  pack<N>(a, x);
                  store_tile<N>(tile, a);
                  load_tile<N>(d, group.tile[1][at.warp].row[r] + tile_row(at.lane));
                  unpack<N>(dx, d);
                  sum_heads<N>(h, a, weights_post.down);
                  sum_heads<N>(g, d, weights_post.up);
                  sums.add(x, dx, h, g);
                  compose<N, true>(dx, d, group.matrix[1][r], at.lane, weights_post.gate, weights_post.down, g);
                  pack<N>(d, dx);
                  unpack<N>(dx, d);  // delta of the rounded values: then d(composed scores) of a row sum to 0
#pragma unroll
                  for (int i = 0; i < N / 4; ++i)
                    part[i] = fmaf(x[i / 2][i % 2], dx[i / 2][i % 2], x[i / 2][2 + i % 2] * dx[i / 2][2 + i % 2]);
                  compose<N, false>(x, a, group.matrix[1][r], at.lane, weights_post.gate, weights_post.up, h);
                  pack<N>(a, x);
                }
                store_tile<N>(result + tile_row(at.lane), a);
                store_tile<N>(d_result + tile_row(at.lane), d);
                const float all = sum_keys<N>(part, at.lane);
                if (stores_sum<N>(at.lane)) memory.delta[at.warp][r][head_of_sum<N>(at.lane)] = all;
                __syncwarp();
                if (at.active(c)) {
                  write_row<N>(weights, result, c, at, row0 + r);
                  write_row<N>(d_weights, d_result, c, at, row0 + r);
                }
                __syncwarp();
              }
              __syncthreads();
              multiply_rows<N>(gram, group.tile[0], group.tile[1], c, at, row0);
              const unsigned i = threadIdx.x, row = row0 + i / N, head = i % N;
              if (i < kRows<N> * N && row < static_cast<unsigned>(c.rows)) {
                float all = 0;
                for (int w = 0; w < kWarps; ++w) all += memory.delta[w][i / N][head];
                delta[(static_cast<size_t>(blockIdx.z * c.rows + row) * gridDim.x + blockIdx.x) * N + head] = all;
              }
            });
  sums.add_to(d_keys, c, at);
}

template <int N>
struct PreMemory {
  Group<N, 2, 1, 2> group[2];               // scores and d(probabilities), later d(composed scores)
  bfloat16 result[kWarps][N * kTilePitch];  // of a row: d(scores)
};

template <int N>
__global__ void __launch_bounds__(kThreads, N == 16 ? 2 : 1)
    dcmha_backward_pre(Chunk c, Factors key_pre, const bfloat16* pre, const float* lse, const float* delta,
                       const bfloat16* scores, bfloat16* d_scores, float* gram, float* d_keys) {
  PreMemory<N>& memory = *dynamic_shared<PreMemory<N>>();
  const Place<N> at(c);
  const float* const row_lse = lse + (static_cast<size_t>(c.first_sample + at.sample) * c.queries + c.first_row) * N;
  const float* const row_delta = delta + static_cast<size_t>(at.sample) * c.rows * N;
  const size_t matrices = static_cast<size_t>(at.sample) * c.rows * N * N;
  scores = at.of_sample(scores, c);
  d_scores = at.of_sample(d_scores, c);
  zero_unseen_rows<N>(d_scores, c, at);
  KeyWeights<N> weights;
  load_weights(weights, key_pre, c, at);
  KeySums<N> sums;
  sums.clear();
  bfloat16* const result = memory.result[at.warp];

  stream<N>(memory.group, c, at, {{scores, d_scores}, {pre + matrices}, {row_lse, row_delta}},
            [&](int row0, Group<N, 2, 1, 2>& group) {
              const int rows = min(kRows<N>, c.rows - row0);
#pragma unroll 1
              for (int r = 0; r < rows; ++r) {
                bfloat16* const d_tile = group.tile[1][at.warp].row[r] + tile_row(at.lane);
                if constexpr (N == 16) weights.stay_packed();
                const Seen seen = at.seen(c, row0 + r);
                Packed<N> d{};
                if (seen.none()) {
                  store_tile<N>(d_tile, d);
                } else {
                  Packed<N> a;
                  Wide<N> x, dx;
                  float h[2][4], g[2][4];
                  load_tile<N>(a, group.tile[0][at.warp].row[r] + tile_row(at.lane));
                  unpack<N>(x, a);
                  compose_forward<N>(x, a, group.matrix[0][r], at.lane, weights, h);
                  exponentials<N>(x, group.statistic[0][r], at.lane);
                  hide<N>(x, seen, at.lane, 0);
                  load_tile<N>(d, d_tile);
                  unpack<N>(dx, d);
#pragma unroll
                  for (int n = 0; n < N / 8; ++n) {
                    const float2 of_row =
                        *reinterpret_cast<const float2*>(group.statistic[1][r] + n * 8 + at.lane % 4 * 2);
#pragma unroll
                    for (int q = 0; q < 4; ++q) dx[n][q] = x[n][q] * (dx[n][q] - (q % 2 ? of_row.y : of_row.x));
                  }
                  pack<N>(d, dx);
                  store_tile<N>(d_tile, d);
                  sum_heads<N>(g, d, weights.up);
                  unpack<N>(x, a);  // the scores again
                  sums.add(x, dx, h, g);
                  compose<N, true>(dx, d, group.matrix[0][r], at.lane, weights.gate, weights.down, g);
                  pack<N>(d, dx);
                }
                store_tile<N>(result + tile_row(at.lane), d);
                __syncwarp();
                if (at.active(c)) write_row<N>(d_scores, result, c, at, row0 + r);
                __syncwarp();
              }
              __syncthreads();
              multiply_rows<N>(gram, group.tile[0], group.tile[1], c, at, row0);
            });
  sums.add_to(d_keys, c, at);
}

template <int N>
void run_post(const Chunk& c, const Factors& key_pre, const Factors& key_post, const bfloat16* pre,
              const bfloat16* post, const float* lse, const bfloat16* scores, bfloat16* d_weights, bfloat16* weights,
              float* delta, float* gram, float* d_keys) {
  launch(
      dcmha_backward_post<N>,
      {.grid = dim3(c.key_blocks(), c.segments, c.samples), .block = kThreads, .shared_bytes = sizeof(PostMemory<N>)},
      c, key_pre, key_post, pre, post, lse, scores, d_weights, weights, delta, gram, d_keys);
}
template <int N>
void run_pre(const Chunk& c, const Factors& key_pre, const bfloat16* pre, const float* lse, const float* delta,
             const bfloat16* scores, bfloat16* d_scores, float* gram, float* d_keys) {
  launch(dcmha_backward_pre<N>,
         {.grid = dim3(c.key_blocks(), c.segments, c.samples), .block = kThreads, .shared_bytes = sizeof(PreMemory<N>)},
         c, key_pre, pre, lse, delta, scores, d_scores, gram, d_keys);
}

}  // namespace

void backward_post(const Chunk& c, const Factors& key_pre, const Factors& key_post, const bfloat16* pre,
                   const bfloat16* post, const float* lse, const bfloat16* scores, bfloat16* d_weights,
                   bfloat16* weights, float* delta, float* gram, float* d_keys) {
  (c.heads == 16 ? run_post<16> : run_post<32>)(c, key_pre, key_post, pre, post, lse, scores, d_weights, weights, delta,
                                                gram, d_keys);
}

int64_t shared_bytes(int heads) { return heads == 16 ? sizeof(PostMemory<16>) : sizeof(PostMemory<32>); }

void backward_pre(const Chunk& c, const Factors& key_pre, const bfloat16* pre, const float* lse, const float* delta,
                  const bfloat16* scores, bfloat16* d_probabilities, float* gram, float* d_keys) {
  (c.heads == 16 ? run_pre<16> : run_pre<32>)(c, key_pre, pre, lse, delta, scores, d_probabilities, gram, d_keys);
}

}  // namespace braid::cuda::dcmha_fast
