// The small kernels around the four of tensor_core_forward.cu and tensor_core_backward.cu: the matrix of each query
// row, log-sums and deltas of partial ones, and from partial sums to the gradients of the mixing weights.
#include "braid/cuda/device/kernel.h"
// (kernel.h first: the header below uses it)
#include "braid/cuda/attention/kernels.h"
#include "braid/cuda/attention/tile.cuh"

namespace braid::cuda::attention::tensor_core {
namespace {

constexpr int kThreads = 256;
unsigned blocks_for(int64_t values) { return static_cast<unsigned>((values + kThreads - 1) / kThreads); }
__device__ __forceinline__ int64_t global_thread() { return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; }

__device__ __forceinline__ const bfloat16* token_of(const Factor& f, int64_t sample, int64_t token, int rank) {
  return f.data + sample * f.sample + token * f.token + rank * f.rank;
}

// C[n,m] = base[n,m] + sum_r down_rn up_rm + (n == m) gate_n, of the mixing blockIdx.y. A thread has 8 neighbouring m.
template <int N>
__global__ void __launch_bounds__(kThreads) dcmha_matrices(ScoreBlock c, BothMixings mixings) {
  const Factors query = mixings.of[blockIdx.y].query;
  const Base base = mixings.of[blockIdx.y].base;
  constexpr int pieces = N / 8, each = N * pieces;  // threads of a row of C, and of C
  const int64_t i = global_thread();
  const int row = static_cast<int>(i / each);  // a block has fewer than 2^31 scores
  if (row >= c.samples * c.rows) return;
  const int n = static_cast<int>(i % each) / pieces, m0 = static_cast<int>(i % pieces) * 8;
  const int64_t sample = c.first_sample + row / c.rows, t = c.first_row + row % c.rows;
  float value[8] = {};
  if (base.data) {
#pragma unroll
    for (int k = 0; k < 8; ++k) value[k] = static_cast<float>(base.data[n * base.row + m0 + k]);
  }
  if (query.down.data) {
    for (int r = 0; r < query.rank; ++r) {
      const float down = static_cast<float>(token_of(query.down, sample, t, r)[n]);
      const bfloat16* const up = token_of(query.up, sample, t, r) + m0;
#pragma unroll
      for (int k = 0; k < 8; ++k) value[k] = fmaf(down, static_cast<float>(up[k]), value[k]);
    }
  }
  if (query.gate.data && n / 8 == m0 / 8) {
    const float gate = static_cast<float>(token_of(query.gate, sample, t, 0)[n]);
#pragma unroll
    for (int k = 0; k < 8; ++k) value[k] += n % 8 == k ? gate : 0;
  }
  write_16(mixings.matrices[blockIdx.y] + i * 8, {pack_bf16(value[0], value[1]), pack_bf16(value[2], value[3]),
                                                  pack_bf16(value[4], value[5]), pack_bf16(value[6], value[7])});
}

struct BothFactors {  // before and after softmax
  Factors of[2];
};
// A thread has 8 neighbouring heads of one factor of a key.
__global__ void __launch_bounds__(kThreads)
    dcmha_pack_key_factors(int first_sample, int64_t tokens, int keys, BothFactors factors, bfloat16* packed) {
  constexpr int N = kOnePassHeads, pieces = N / 8;
  const int64_t i = global_thread(), token = i / (10 * pieces);
  if (token >= tokens) return;
  const int part = static_cast<int>(i % (10 * pieces)) / pieces, k = part % 5, rank = k % 2;
  const Factors f = factors.of[part / 5];
  const Factor& factor = k == 4 ? f.gate : k < 2 ? f.down : f.up;
  uint32_t pairs[4] = {};
  if (factor.data && (k == 4 || rank < f.rank)) {
    const bfloat16* const from = token_of(factor, first_sample + token / keys, token % keys, rank) + i % pieces * 8;
#pragma unroll
    for (int p = 0; p < 4; ++p)
      pairs[p] = pack_bf16(static_cast<float>(from[2 * p]), static_cast<float>(from[2 * p + 1]));
  }
  write_16(packed + i * 8, {pairs[0], pairs[1], pairs[2], pairs[3]});
}

// The blocks of keys that are not all masked for one of the block's rows: their partial sums exist.
struct KeyBlocks {
  int begin, end;
  __device__ __forceinline__ KeyBlocks(const ScoreBlock& c, int row) {
    const int panel = row / c.panel_rows, r = row % c.panel_rows + c.shift_of(panel);
    const int first = max(max(0, -c.first_key_of(panel)), r + c.begin_shift);
    const int last = min(c.key_columns_of(panel), r + c.end_shift) - 1;
    begin = first / kBlockKeys;
    end = first > last ? begin : last / kBlockKeys + 1;
  }
};

// lse = ln sum of exp over all unmasked keys of the row; infinite where all are masked.
__global__ void dcmha_combine_log_sums(ScoreBlock c, int key_blocks, const float2* partial, float* lse) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= static_cast<size_t>(c.samples) * c.rows * c.heads) return;
  const int row = static_cast<int>(i / c.heads), head = static_cast<int>(i % c.heads);
  const KeyBlocks unmasked(c, row % c.rows);
  const float2* const from = partial + static_cast<size_t>(row) * key_blocks * c.heads + head;
  float largest = kLowest, sum = 0;
  for (int b = unmasked.begin; b < unmasked.end; ++b) largest = fmaxf(largest, from[b * c.heads].x);
  for (int b = unmasked.begin; b < unmasked.end; ++b)
    sum = fmaf(from[b * c.heads].y, exp2_approx((from[b * c.heads].x - largest) * kLog2e), sum);
  const size_t to = static_cast<size_t>(row / c.rows) * c.queries + row % c.rows;
  lse[to * c.heads + head] = sum > 0 ? largest + log2f(sum) * kLn2 : INFINITY;
}

// delta (samples, queries, N), from the block's first row on, from pairs (samples, rows, key_blocks, N): the sum of the
// first by that of the second
__global__ void dcmha_combine_delta(ScoreBlock c, int key_blocks, const float2* partial, float* delta) {
  const int64_t i = global_thread();
  if (i >= static_cast<int64_t>(c.samples) * c.rows * c.heads) return;
  const int row = static_cast<int>(i / c.heads), head = static_cast<int>(i % c.heads);
  const KeyBlocks unmasked(c, row % c.rows);
  float sum = 0, total = 0;
  for (int b = unmasked.begin; b < unmasked.end; ++b) {
    const float2 part = partial[(static_cast<int64_t>(row) * key_blocks + b) * c.heads + head];
    sum += part.x;
    total += part.y;
  }
  const int64_t to = static_cast<int64_t>(row / c.rows) * c.queries + row % c.rows;
  delta[to * c.heads + head] = total > 0 ? sum / total : 0;
}

// With G the outer sum of a row: d_down_r[n] = sum_m G[n,m] up_r[m], d_up_r[m] = sum_n G[n,m] down_r[n], d_gate[n] =
// G[n,n], d_base[n,m] += G[n,m]. A block takes `rows_each` rows of one sample.
template <int N>
__global__ void __launch_bounds__(kThreads)
    dcmha_query_gradients(ScoreBlock c, int key_blocks, Factors query, const bfloat16* outer_sum, QueryGradients to,
                          float* d_base, int rows_each) {
  constexpr int each = N * N / kThreads;  // elements of G per thread
  struct Memory {
    float G[N][N + 1];
  };
  Memory& memory = shared<Memory>();
  const int thread = static_cast<int>(threadIdx.x);
  const int first = static_cast<int>(blockIdx.x) * rows_each, last = min(c.rows, first + rows_each);
  float base[each] = {};
  for (int row = first; row < last; ++row) {
    const int64_t at = static_cast<int64_t>(blockIdx.y) * c.rows + row;
    const int64_t sample = c.first_sample + blockIdx.y, t = c.first_row + row;
    const KeyBlocks unmasked(c, row);
    float sum[each] = {};
    for (int b = unmasked.begin; b < unmasked.end; ++b) {
#pragma unroll
      for (int k = 0; k < each; ++k)
        sum[k] += static_cast<float>(outer_sum[(at * key_blocks + b) * (N * N) + k * kThreads + thread]);
    }
#pragma unroll
    for (int k = 0; k < each; ++k) {
      const int e = k * kThreads + thread;
      memory.G[e / N][e % N] = sum[k];
      base[k] += sum[k];
    }
    __syncthreads();
    const int64_t token = sample * c.queries + t;
    for (int i = thread; i < query.rank * N; i += kThreads) {
      const int r = i / N, n = i % N;
      const bfloat16* const down = token_of(query.down, sample, t, r);
      const bfloat16* const up = token_of(query.up, sample, t, r);
      float d_down = 0, d_up = 0;
      for (int m = 0; m < N; ++m) {
        d_down = fmaf(memory.G[n][m], up[m], d_down);
        d_up = fmaf(memory.G[m][n], down[m], d_up);
      }
      if (to.down) to.down[token * query.rank * N + i] = bfloat16(d_down);
      if (to.up) to.up[token * query.rank * N + i] = bfloat16(d_up);
    }
    if (to.gate && thread < N) to.gate[token * N + thread] = bfloat16(memory.G[thread][thread]);
    __syncthreads();
  }
  if (d_base == nullptr) return;
  for (int k = 0; k < each; ++k)
    d_base[(static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x) * (N * N) + k * kThreads + thread] += base[k];
}

__global__ void dcmha_base_gradient(int heads, int parts, const float* d_base, bfloat16* gradient) {
  const int64_t i = global_thread();
  if (i >= heads * heads) return;
  float sum = 0;
  for (int p = 0; p < parts; ++p) sum += d_base[static_cast<int64_t>(p) * heads * heads + i];
  gradient[i] = bfloat16(sum);
}

// One thread for each key of the range, part (down 0, down 1, up 0, up 1, gate) and head.
__global__ void dcmha_key_gradients(ScoreBlock c, const float* d_keys, KeyRange keys, float* running, bool ends,
                                    KeyGradients to) {
  const int of_key = 5 * c.heads, count = keys.end - keys.begin;
  const int64_t i = global_thread(), token = i / of_key;
  if (token >= static_cast<int64_t>(c.samples) * count) return;
  const int sample = static_cast<int>(token / count), key = keys.begin + static_cast<int>(token % count);
  const int element = static_cast<int>(i % of_key), part = element / c.heads, head = element % c.heads, r = part % 2;
  float* const kept_sum = running + (static_cast<int64_t>(sample) * c.keys + key) * of_key + element;
  float sum = running ? *kept_sum : 0;
  for (int p = 0; p < c.panels; ++p) {
    const int column = key - c.first_key_of(p);
    if (column < 0 || column >= c.columns_of(p)) continue;
    for (int s = 0; s < c.segments; ++s) {
      const int64_t panel = (static_cast<int64_t>(s) * c.samples + sample) * c.panels + p;
      sum += d_keys[(panel * c.pitch + column) * of_key + element];
    }
  }
  if (!ends) {
    *kept_sum = sum;
    return;
  }
  const int64_t at = (static_cast<int64_t>(c.first_sample) + sample) * c.keys + key;
  if (part == 4) {
    if (to.gate) to.gate[at * c.heads + head] = bfloat16(sum);
  } else if (bfloat16* const data = part < 2 ? to.down : to.up; data && r < to.rank) {
    data[(at * to.rank + r) * c.heads + head] = bfloat16(sum);
  }
}

}  // namespace

void build_matrices(const ScoreBlock& c, const BothMixings& mixings) {
  const int64_t threads = static_cast<int64_t>(c.samples) * c.rows * c.heads * c.heads / 8;
  launch(c.heads == 16 ? dcmha_matrices<16> : dcmha_matrices<32>,
         {.grid = dim3(blocks_for(threads), 2), .block = kThreads, .bytes = 2 * 16 * threads}, c, mixings);
}

void pack_key_factors(int first_sample, int samples, int keys, const Factors& pre, const Factors& post,
                      bfloat16* packed) {
  const int64_t tokens = int64_t{samples} * keys, threads = tokens * 10 * kOnePassHeads / 8;
  launch(dcmha_pack_key_factors, {.grid = blocks_for(threads), .block = kThreads, .bytes = 2 * 16 * threads},
         first_sample, tokens, keys, BothFactors{{pre, post}}, packed);
}

void combine_log_sums(const ScoreBlock& c, const float* partial, float* lse) {
  const int64_t values = static_cast<int64_t>(c.samples) * c.rows * c.heads;
  const int64_t bytes = unmasked_scores_of(c) / kBlockKeys * 8 + 4 * values;
  launch(dcmha_combine_log_sums, {.grid = blocks_for(values), .block = kThreads, .bytes = bytes}, c, c.key_blocks(),
         reinterpret_cast<const float2*>(partial), const_cast<float*>(lse_of_block(c, lse)));
}

void combine_delta(const ScoreBlock& c, const float* partial, float* delta) {
  const int64_t values = static_cast<int64_t>(c.samples) * c.rows * c.heads;
  const int64_t bytes = unmasked_scores_of(c) / kBlockKeys * 8 + 4 * values;
  launch(dcmha_combine_delta, {.grid = blocks_for(values), .block = kThreads, .bytes = bytes}, c, c.key_blocks(),
         reinterpret_cast<const float2*>(partial), delta);
}

void query_gradients(const ScoreBlock& c, const Factors& query, const bfloat16* outer_sum, const QueryGradients& to,
                     float* d_base) {
  Factors factors = query;
  if (!to.down && !to.up) factors.rank = 0;
  // Rows are independent but for d(base): a row per block, since a block's time is the latency of its loads.
  const int rows_each = d_base ? kQueryBlockRows : 1;
  const unsigned blocks = static_cast<unsigned>((c.rows + rows_each - 1) / rows_each);
  const int64_t bytes = unmasked_scores_of(c) / kBlockKeys * 2 * c.heads +
                        int64_t{c.samples} * c.rows * c.heads * 2 * (4 * query.rank + 1);
  launch(c.heads == 16 ? dcmha_query_gradients<16> : dcmha_query_gradients<32>,
         {.grid = dim3(blocks, static_cast<unsigned>(c.samples)), .block = kThreads, .bytes = bytes}, c, c.key_blocks(),
         factors, outer_sum, to, d_base, rows_each);
}

void base_gradient(int heads, int parts, const float* d_base, bfloat16* gradient) {
  launch(dcmha_base_gradient, {.grid = blocks_for(heads * heads), .block = kThreads}, heads, parts, d_base, gradient);
}

void key_gradients(const ScoreBlock& c, const float* d_keys, KeyRange keys, float* running, const KeyGradients* to) {
  const int64_t threads = static_cast<int64_t>(c.samples) * (keys.end - keys.begin) * 5 * c.heads;
  const int64_t bytes = scores_of(c) / c.panel_rows * c.segments * 20 + threads * (to ? 2 : 8);
  launch(dcmha_key_gradients, {.grid = blocks_for(threads), .block = kThreads, .bytes = bytes}, c, d_keys, keys,
         running, to != nullptr, to ? *to : KeyGradients{});
}

}  // namespace braid::cuda::attention::tensor_core
