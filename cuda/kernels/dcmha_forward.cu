// DCMHA forward between the two batched products: F1, the rows' log-sums, and F2, scores to weights.
#include "cuda/kernel.h"
// (kernel.h first: the headers below use its words)
#include "cuda/dcmha_stream.cuh"

namespace braid::cuda::dcmha_fast {
namespace {

constexpr float kLowest = -1e30f;  // stands for the largest of no scores; finite, so that differences are no NaN

template <int N>
struct LogSumMemory {
  Group<N, 1, 1, 0> group[2];
  float2 found[2][kWarps][kRows<N>][N];  // largest, sum; two, because a group's are combined during the next
};

// F1. Largest x and sum of 2^(x - largest) over the block's keys, x = log2(e) compose(scores).
template <int N>
__global__ void __launch_bounds__(kThreads, 2)
    dcmha_log_sum(Chunk c, Factors key, const bfloat16* scores, const bfloat16* pre, float2* partial) {
  LogSumMemory<N>& memory = *dynamic_shared<LogSumMemory<N>>();
  const Place<N> at(c);
  KeyWeights<N> weights;
  load_weights(weights, key, c, at);

  const auto combine = [&](int row0, int now) {  // the warps of the block
    const int i = static_cast<int>(threadIdx.x), row = i / N, head = i % N;
    if (i >= kRows<N> * N || row0 + row >= c.rows) return;
    float2 all{kLowest, 0};
    for (int w = 0; w < kWarps; ++w) all.x = fmaxf(all.x, memory.found[now][w][row][head].x);
    for (int w = 0; w < kWarps; ++w) {
      const float2 one = memory.found[now][w][row][head];
      all.y = fmaf(one.y, exp2_approx(one.x - all.x), all.y);
    }
    partial[((static_cast<size_t>(at.sample) * c.rows + row0 + row) * gridDim.x + blockIdx.x) * N + head] = all;
  };

  const bfloat16* const matrices = pre + static_cast<size_t>(at.sample) * c.rows * N * N;
  int now = 0;
  stream<N>(memory.group, c, at, {{at.of_sample(scores, c)}, {matrices}, {}}, [&](int row0, Group<N, 1, 1, 0>& group) {
    if (row0 > at.begin * kRows<N>) combine(row0 - kRows<N>, now ^ 1);
#pragma unroll 1
    for (int r = 0; r < kRows<N>; ++r) {
      if constexpr (N == 32) weights.stay_packed();
      const Seen seen = at.seen(c, row0 + r);
      float largest[N / 4], sum[N / 4];
      if (seen.none()) {
#pragma unroll
        for (int i = 0; i < N / 4; ++i) largest[i] = kLowest, sum[i] = 0;
      } else {
        Packed<N> a;
        Wide<N> x;
        float h[2][4];
        load_tile<N>(a, group.tile[0][at.warp].row[r] + tile_row(at.lane));
        unpack<N>(x, a);
        compose_forward<N>(x, a, group.matrix[0][r], at.lane, weights, h);
        hide<N>(x, seen, at.lane, -INFINITY);
#pragma unroll
        for (int i = 0; i < N / 4; ++i) {
          const float low = x[i / 2][i % 2], high = x[i / 2][2 + i % 2];
          float m = fmaxf(kLowest, fmaxf(low, high));
#pragma unroll
          for (int distance = 4; distance <= 16; distance *= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, distance));
          largest[i] = m * kLog2e;
          sum[i] = exp2_approx(fmaf(low, kLog2e, -largest[i])) + exp2_approx(fmaf(high, kLog2e, -largest[i]));
        }
      }
      const float all = sum_keys<N>(sum, at.lane);
      const int head = head_of_sum<N>(at.lane);
      float reference = largest[0];
#pragma unroll
      for (int i = 1; i < N / 4; ++i) reference = head == i / 2 * 8 + at.lane % 4 * 2 + i % 2 ? largest[i] : reference;
      if (stores_sum<N>(at.lane)) memory.found[now][at.warp][r][head] = {reference, all};
    }
    now ^= 1;
  });
  __syncthreads();
  if (at.begin < at.end) combine((at.end - 1) * kRows<N>, now ^ 1);
}

// lse = ln sum of exp over all keys that the row sees; infinite where it sees none.
__global__ void dcmha_combine_log_sums(Chunk c, int key_blocks, const float2* partial, float* lse) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= static_cast<size_t>(c.samples) * c.rows * c.heads) return;
  const size_t sample = i / c.heads / c.rows;
  const int head = static_cast<int>(i % c.heads), row = static_cast<int>(i / c.heads % c.rows), t = c.first_row + row;
  const int first = max(0, row + c.begin_shift), last = min(c.key_columns, row + c.end_shift) - 1;
  const float2* const from = partial + (sample * c.rows + row) * key_blocks * c.heads + head;
  float largest = kLowest, sum = 0;
  if (first <= last) {
    for (int b = first / kBlockKeys; b <= last / kBlockKeys; ++b) largest = fmaxf(largest, from[b * c.heads].x);
    for (int b = first / kBlockKeys; b <= last / kBlockKeys; ++b)
      sum = fmaf(from[b * c.heads].y, exp2_approx(from[b * c.heads].x - largest), sum);
  }
  lse[((c.first_sample + sample) * c.queries + t) * c.heads + head] =
      sum > 0 ? (largest + log2f(sum)) * kLn2 : INFINITY;
}

template <int N>
struct WeightsMemory {
  Group<N, 1, 2, 1> group[2];
};

// F2. weights = compose_post(exp(compose_pre(scores) - lse)), in place.
template <int N>
__global__ void __launch_bounds__(kThreads, N == 16 ? 2 : 1)
    dcmha_weights(Chunk c, Factors key_pre, Factors key_post, const bfloat16* pre, const bfloat16* post,
                  const float* lse, bfloat16* scores) {
  WeightsMemory<N>& memory = *dynamic_shared<WeightsMemory<N>>();
  const Place<N> at(c);
  const bool active = at.active(c);
  KeyWeights<N> weights_pre, weights_post;
  load_weights(weights_pre, key_pre, c, at);
  load_weights(weights_post, key_post, c, at);
  const float* const row_lse = lse + (static_cast<size_t>(c.first_sample + at.sample) * c.queries + c.first_row) * N;

  const size_t matrices = static_cast<size_t>(at.sample) * c.rows * N * N;
  scores = at.of_sample(scores, c);
  zero_unseen_rows<N>(scores, c, at);

  stream<N>(memory.group, c, at, {{scores}, {pre + matrices, post + matrices}, {row_lse}},
            [&](int row0, Group<N, 1, 2, 1>& group) {
              const int rows = min(kRows<N>, c.rows - row0);
#pragma unroll 1
              for (int r = 0; r < rows; ++r) {
                bfloat16* const tile = group.tile[0][at.warp].row[r] + tile_row(at.lane);
                const Seen seen = at.seen(c, row0 + r);
                Packed<N> a{};
                if (!seen.none()) {
                  Wide<N> x;
                  float h[2][4];
                  load_tile<N>(a, tile);
                  unpack<N>(x, a);
                  compose_forward<N>(x, a, group.matrix[0][r], at.lane, weights_pre, h);
                  exponentials<N>(x, group.statistic[0][r], at.lane);
                  hide<N>(x, seen, at.lane, 0);
                  pack<N>(a, x);
                  compose_forward<N>(x, a, group.matrix[1][r], at.lane, weights_post, h);
                  pack<N>(a, x);
                }
                store_tile<N>(tile, a);
              }
              __syncwarp();
              if (active) {

#pragma unroll
                for (int r = 0; r < kRows<N>; ++r) {
                  if (r < rows) write_row<N>(scores, group.tile[0][at.warp].row[r], c, at, row0 + r);
                }
              }
            });
}

template <int N>
void run_log_sum(const Chunk& c, const Factors& key, const bfloat16* scores, const bfloat16* pre, float2* partial) {
  launch(
      dcmha_log_sum<N>,
      {.grid = dim3(c.key_blocks(), c.segments, c.samples), .block = kThreads, .shared_bytes = sizeof(LogSumMemory<N>)},
      c, key, scores, pre, partial);
}
template <int N>
void run_weights(const Chunk& c, const Factors& key_pre, const Factors& key_post, const bfloat16* pre,
                 const bfloat16* post, const float* lse, bfloat16* scores) {
  launch(dcmha_weights<N>,
         {.grid = dim3(c.key_blocks(), c.segments, c.samples),
          .block = kThreads,
          .shared_bytes = sizeof(WeightsMemory<N>)},
         c, key_pre, key_post, pre, post, lse, scores);
}

}  // namespace

void partial_log_sums(const Chunk& c, const Factors& key_pre, const bfloat16* scores, const bfloat16* pre,
                      float* partial) {
  (c.heads == 16 ? run_log_sum<16> : run_log_sum<32>)(c, key_pre, scores, pre, reinterpret_cast<float2*>(partial));
}

void combine_log_sums(const Chunk& c, const float* partial, float* lse) {
  const int64_t values = static_cast<int64_t>(c.samples) * c.rows * c.heads;
  launch(dcmha_combine_log_sums, {.grid = static_cast<unsigned>((values + 255) / 256), .block = 256}, c, c.key_blocks(),
         reinterpret_cast<const float2*>(partial), lse);
}

void scores_to_weights(const Chunk& c, const Factors& key_pre, const Factors& key_post, const bfloat16* pre,
                       const bfloat16* post, const float* lse, bfloat16* scores) {
  (c.heads == 16 ? run_weights<16> : run_weights<32>)(c, key_pre, key_post, pre, post, lse, scores);
}

}  // namespace braid::cuda::dcmha_fast
