// DCMHA forward between the two batched products: dcmha_log_sum, the log-sum-exp of the rows, and dcmha_weights, from
// scores to the weights P' of the values.
#include "braid/cuda/device/kernel.h"
// (kernel.h first: the headers below use it)
#include "braid/cuda/attention/columns.cuh"

namespace braid::cuda::attention::tensor_core {
namespace {

template <int N>
struct LogSumMemory {
  PipelineStage<N, 1, 1, 0> group[2];
  float2 found[2][kWarps][kRows<N>][N];  // largest, sum; two, because a group's are combined during the next
};

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
  // With 32 heads, the factors `up` of post-compose, and behind their keys its gate, one half behind each rank.
  bfloat16 spilled[N == 32 ? kWarps : 1][2 * N * kTilePitch];
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
  [[maybe_unused]] bfloat16* spilled_gate = nullptr;
  if constexpr (N == 32) {
    mix_post.spill(kept_shared(memory.spilled[at.warp] + tile_row(at.lane)));
    spilled_gate =
        kept_shared(memory.spilled[at.warp] + (at.lane / 8 % 2 * N + at.lane / 16 * 8 + at.lane % 8) * kTilePitch + 16);
    store_a<N>(spilled_gate, gate_post);
  }
  zero_masked_rows<N>(scores, c, at);
  const StageReader<N, 1, 2, 1> in(memory.group, at);
  const GroupWriter<N, typename PipelineStage<N, 1, 2, 1>::Part> out(memory.group[0].tile[0], c, at);

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
      probabilities<N>(x, a, mix_pre, h, gate_pre, in.matrix(stage, 0, r), in.statistic(stage, 0, r), at.diagonal);
      if (!all_unmasked) mask_tile<N>(x, at.unmasked(row0 + r), at.lane);
      pack<N>(a, x);
      mix_post.sum(h, a, at.diagonal);
      if constexpr (N == 32) load_a<N>(gate_post, spilled_gate);
      compose<N, Of::weights>(x, a, mix_post, h, gate_post, in.matrix(stage, 1, r), at.diagonal);
      pack<N>(a, x);
      store_a<N>(tile, a);
    }
    __syncthreads();
    out.write(scores, in.distance(stage, 0), row0, rows);
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
          .bytes = 2 * copied_scores_of(c) + pair_bytes(c) + row_bytes<N>(c, 1, 0)},
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
          .bytes = 2 * (copied_scores_of(c) + scores_of(c)) + row_bytes<N>(c, 2, 1)},
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
