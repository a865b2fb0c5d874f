// DCMHA forward between the two batched products: dcmha_log_sum, the log-sum-exp of the rows, and dcmha_weights, from
// scores to the weights P' of the values.
#include "braid/cuda/device/kernel.h"
// (kernel.h first: the headers below use it)
#include "braid/cuda/attention/key_factors.cuh"

namespace braid::cuda::attention::tensor_core {
namespace {

template <int N>
struct LogSumMemory {
  PipelineStage<N, 1, 1, 0> group[2];
  float2 found[2][kWarps][kRows<N>][N];  // largest, sum; two, because a group's are combined during the next
};

// ---- dcmha_log_sum: transposed tiles, heads x keys ----
//
// Here a tile is the right operand and the result of the products that mix, so that a lane has several keys of one head
// and adds most of each sum by itself. Both ranks of a key's factors share one product then. For keys 8h ... 8h+7, h =
// 0, 1:
//   in:  b[k][2h + q]: key 8h + g; heads 16k + 8q + 2t, +1
//   out: x[h][m][q]:   heads 16m + g (q < 2) or 16m + 8 + g; key 8h + 2t + q%2

template <int N>
struct ColumnWeights {
  uint32_t down[2][N / 16][4];  // rows (rank, key of 8), columns heads
  uint32_t up[2][N / 16][4];    // rows heads, columns (rank, key of 8)
  BFragment<N> gate;            // like `in`

  __device__ __forceinline__ explicit ColumnWeights(const KeyFactors<N>& keys) {
    AFragment<N> gates;
    keys.load_a(gates, KeyFactors<N>::kGate);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      AFragment<N> downs;
      BFragment<N> ups;
      keys.load_a(downs, KeyFactors<N>::kDown + r);
      keys.load_b(ups, KeyFactors<N>::kUp + r);
#pragma unroll
      for (int k = 0; k < N / 16; ++k) {
#pragma unroll
        for (int q = 0; q < 4; ++q) {  // keys 8 (q % 2), heads 16 k + 8 (q / 2)
          down[q % 2][k][q / 2 * 2 + r] = downs[k][q];
          up[q % 2][k][2 * r + q / 2] = ups[k][q];
          if (r == 0) gate[k][q % 2 * 2 + q / 2] = gates[k][q];
        }
      }
    }
  }
};

// x = compose(scores) for one query; `scores` and `matrix`: the rows whose addresses this lane passes to ldmatrix.
template <int N>
__device__ __forceinline__ void compose_columns(float (&x)[2][N / 16][4], const bfloat16* scores,
                                                const bfloat16* matrix, const ColumnWeights<N>& w, uint32_t mask,
                                                const uint32_t (&identity)[4]) {
  BFragment<N> b;
  float h[2][4] = {};
#pragma unroll
  for (int k = 0; k < N / 16; ++k) {
    ldmatrix<true>(b[k], scores + k * 16 * kTilePitch);
#pragma unroll
    for (int half = 0; half < 2; ++half) mma_bf16(h[half], w.down[half][k], b[k][2 * half], b[k][2 * half + 1]);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint32_t h0 = pack_bf16(h[half][0], h[half][1]) & mask, h1 = pack_bf16(h[half][2], h[half][3]) & mask;
#pragma unroll
    for (int m = 0; m < N / 16; ++m) {
      x[half][m][0] = x[half][m][1] = x[half][m][2] = x[half][m][3] = 0;
      const uint32_t b0 = b[m][2 * half], b1 = b[m][2 * half + 1];
      mma_bf16(x[half][m], identity, b0, b1);
      const uint32_t gate0 = w.gate[m][2 * half], gate1 = w.gate[m][2 * half + 1];
      const uint32_t f0 = multiply_bf16x2(b0, gate0), f1 = multiply_bf16x2(b1, gate1);
      mma_bf16(x[half][m], identity, f0, f1);
      mma_bf16(x[half][m], identity, fma_bf16x2(b0, gate0, negative_bf16x2(f0)),
               fma_bf16x2(b1, gate1, negative_bf16x2(f1)));  // and what was rounded off
      mma_bf16(x[half][m], w.up[half][m], h0, h1);
    }
  }
#pragma unroll
  for (int m = 0; m < N / 16; ++m) {
#pragma unroll
    for (int k = 0; k < N / 16; ++k) {
      uint32_t a[4];  // of C^T
      ldmatrix<true>(a, matrix + k * 16 * kMatrixPitch<N> + m * 16);
#pragma unroll
      for (int half = 0; half < 2; ++half) mma_bf16(x[half][m], a, b[k][2 * half], b[k][2 * half + 1]);
    }
  }
}

// Largest x and sum of exp(x - largest) over the block's keys, x = compose(scores).
template <int N>
__global__ void __launch_bounds__(kThreads, N == 16 ? 3 : 2)
    dcmha_log_sum(ScoreBlock c, Factors key, const bfloat16* scores, const bfloat16* pre, float2* partial) {
  LogSumMemory<N>& memory = *dynamic_shared<LogSumMemory<N>>();
  static_assert(KeyFactors<N>::kBytes <= sizeof(memory.group), "factors come through the stages");
  const BlockCoord<N> at(c);
  if (!at.in_panel()) return;
  uint32_t zeros[2];
  opaque_zeros(zeros);
  const ColumnWeights<N> weights(KeyFactors<N>(key, c, at));
  __syncthreads();  // the factors' memory is free

  const auto combine = [&](int row0, int stage) {  // the warps of the block
    const int i = static_cast<int>(threadIdx.x), row = i / N, head = i % N;
    if (i >= kRows<N> * N || row0 + row >= at.rows) return;
    float2 all{kLowest, 0};
    for (int w = 0; w < kWarps; ++w) all.x = fmaxf(all.x, memory.found[stage][w][row][head].x);
    for (int w = 0; w < kWarps; ++w) {
      const float2 one = memory.found[stage][w][row][head];
      all.y = fmaf(one.y, exp2_approx((one.x - all.x) * kLog2e), all.y);
    }
    partial[(static_cast<size_t>(at.first_row(c, c.rows) + row0 + row) * gridDim.x + blockIdx.x) * N + head] = all;
  };

  const StageReader<N, 1, 1, 0> in(memory.group, at);
  const bfloat16* const scores_rows = kept_shared(memory.group[0].tile[0][at.warp].row[0] +
                                                  (at.lane / 8 % 2 * 8 + at.lane % 8) * kTilePitch + at.lane / 16 * 8);
  const uint32_t one = at.diagonal & 0x3f803f80u, identity[4] = {one, zeros[0], zeros[1], one};
  float2* const found_rows = kept_shared(&memory.found[0][at.warp][0][at.lane / 4]);
  stream<N>(memory.group, c, at, {{scores}, {pre}, {}}, [&](int row0, int rows, int stage) {
    if (row0 > at.begin * kRows<N>) combine(row0 - kRows<N>, stage ^ 1);
    const bool all_unmasked = at.all_unmasked(row0, rows);
#pragma unroll 1
    for (int r = 0; r < rows; ++r) {
      float2* const found = found_rows + (stage * kWarps * kRows<N> + r) * N;
      if (!all_unmasked && at.unmasked(row0 + r).none()) {
#pragma unroll
        for (int n = 0; n < N; n += 8) {
          if (at.lane % 4 == 0) found[n] = {kLowest, 0};
        }
        continue;
      }
      float x[2][N / 16][4];
      compose_columns<N>(x, scores_rows + in.distance(stage, r), in.transposed(stage, 0, r), weights, at.diagonal,
                         identity);
      if (!all_unmasked) {
        const Unmasked unmasked = at.unmasked(row0 + r);
#pragma unroll
        for (int i = 0; i < 4; ++i) {  // keys
          if (!unmasked.masks(i / 2 * 8 + at.lane % 4 * 2 + i % 2)) continue;
#pragma unroll
          for (int m = 0; m < N / 16; ++m) x[i / 2][m][i % 2] = x[i / 2][m][2 + i % 2] = kLowest;
        }
      }
#pragma unroll
      for (int n = 0; n < N / 8; ++n) {  // heads 8n + g
        float v[4] = {x[0][n / 2][n % 2 * 2], x[0][n / 2][n % 2 * 2 + 1], x[1][n / 2][n % 2 * 2],
                      x[1][n / 2][n % 2 * 2 + 1]};
        float largest = fmaxf(fmaxf(v[0], v[1]), fmaxf(v[2], v[3]));
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
#pragma unroll
        for (float& value : v) value = exp2_approx(fmaf(value, kLog2e, -kLog2e * largest));
        float sum = (v[0] + v[1]) + (v[2] + v[3]);
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        if (at.lane % 4 == 0) found[8 * n] = {largest, sum};
      }
    }
  });
  __syncthreads();
  if (at.begin < at.end) combine((at.end - 1) * kRows<N>, (at.end - 1) & 1);
}

template <int N>
struct WeightsMemory {
  PipelineStage<N, 1, 2, 1> group[2];
  bfloat16 spilled[N == 32 ? kWarps : 1][2 * N * kTilePitch];  // with 32 heads, the factors `up` of post-compose
};

// weights = compose_post(exp(compose_pre(scores) - lse)), in place.
template <int N>
__global__ void __launch_bounds__(kThreads, 2)
    dcmha_weights(ScoreBlock c, Factors key_pre, Factors key_post, const bfloat16* pre, const bfloat16* post,
                  const float* lse, bfloat16* scores) {
  WeightsMemory<N>& memory = *dynamic_shared<WeightsMemory<N>>();
  static_assert(KeyFactors<N>::kBytes <= sizeof(memory.group), "factors come through the stages");
  const BlockCoord<N> at(c);
  if (!at.in_panel()) return;
  DiagonalFragments h;
  LowRankMix<N> mix_pre;
  LowRankMix<N, N == 32> mix_post;
  AFragment<N> gate_pre, gate_post;
  using Keys = KeyFactors<N>;
  {
    const Keys keys(key_pre, c, at);
    mix_pre.load(keys, Keys::kDown, Keys::kUp);
    keys.load_a(gate_pre, Keys::kGate);
  }
  {
    const Keys keys(key_post, c, at);
    mix_post.load(keys, Keys::kDown, Keys::kUp);
    keys.load_a(gate_post, Keys::kGate);
  }
  __syncthreads();  // the factors' memory is free
  if constexpr (N == 32) mix_post.spill(kept_shared(memory.spilled[at.warp] + tile_row(at.lane)));
  zero_masked_rows<N>(scores, c, at);
  const StageReader<N, 1, 2, 1> in(memory.group, at);
  const TileWriter<N> out(memory.group[0].tile[0][at.warp].row[0], c, at);

  stream<N>(memory.group, c, at, {{scores}, {pre, post}, {lse}}, [&](int row0, int rows, int stage) {
    const bool all_unmasked = at.all_unmasked(row0, rows);
#pragma unroll 1
    for (int r = 0; r < rows; ++r) {
      bfloat16* const tile = in.tile(stage, 0, r);
      if (!all_unmasked && at.unmasked(row0 + r).none()) {
        store_a<N>(tile, AFragment<N>{});
        continue;
      }
      AFragment<N> a;
      Accumulator<N> x;
      load_a<N>(a, tile);
      probabilities<N>(x, a, mix_pre, h, gate_pre, in.matrix(stage, 0, r), in.statistic(stage, 0, r), at);
      if (!all_unmasked) mask_tile<N>(x, at.unmasked(row0 + r), at.lane);
      pack<N>(a, x);
      mix_post.sum(h, a, at.diagonal);
      compose<N, Of::weights>(x, a, mix_post, h, gate_post, in.matrix(stage, 1, r), at);
      pack<N>(a, x);
      store_a<N>(tile, a);
    }
    __syncwarp();
    out.template write<kRows<N>>(scores, in.distance(stage, 0), row0, rows);
  });
}

// Bytes of n matrices and of n values of each head, for every row; of a pair of f32 for each row, head and key block.
template <int N>
int64_t row_bytes(const ScoreBlock& c, int matrices, int values) {
  return int64_t{c.samples} * c.rows * (2 * N * N * matrices + 4 * N * values);
}
int64_t pair_bytes(const ScoreBlock& c) { return unmasked_scores_of(c) / kBlockKeys * 8; }

template <int N>
void run_log_sum(const ScoreBlock& c, const Factors& key, const bfloat16* scores, const bfloat16* pre,
                 float2* partial) {
  launch(dcmha_log_sum<N>,
         {.grid = grid_of(c),
          .block = kThreads,
          .shared_bytes = sizeof(LogSumMemory<N>),
          .scores = unmasked_scores_of(c),
          .bytes = 2 * unmasked_scores_of(c) + pair_bytes(c) + row_bytes<N>(c, 1, 0)},
         c, key, scores, pre, partial);
}
template <int N>
void run_weights(const ScoreBlock& c, const Factors& key_pre, const Factors& key_post, const bfloat16* pre,
                 const bfloat16* post, const float* lse, bfloat16* scores) {
  launch(dcmha_weights<N>,
         {.grid = grid_of(c),
          .block = kThreads,
          .shared_bytes = sizeof(WeightsMemory<N>),
          .scores = unmasked_scores_of(c),
          .bytes = 2 * (unmasked_scores_of(c) + scores_of(c)) + row_bytes<N>(c, 2, 1)},
         c, key_pre, key_post, pre, post, lse, scores);
}

}  // namespace

void partial_log_sums(const ScoreBlock& c, const Factors& key_pre, const bfloat16* scores, const bfloat16* pre,
                      float* partial) {
  (c.heads == 16 ? run_log_sum<16> : run_log_sum<32>)(c, key_pre, scores, pre, reinterpret_cast<float2*>(partial));
}

void scores_to_weights(const ScoreBlock& c, const Factors& key_pre, const Factors& key_post, const bfloat16* pre,
                       const bfloat16* post, const float* lse, bfloat16* scores) {
  (c.heads == 16 ? run_weights<16> : run_weights<32>)(c, key_pre, key_post, pre, post, lse_of_block(c, lse), scores);
}

}  // namespace braid::cuda::attention::tensor_core
