// The small kernels around the four of tensor_core_forward.cu and tensor_core_backward.cu: the matrix of each query
// row, and from partial sums to the gradients of the mixing weights.
#include "braid/cuda/attention/kernels.h"
#include "braid/cuda/device/kernel.h"

namespace braid::cuda::attention::tensor_core {
namespace {

constexpr int kThreads = 256;
unsigned blocks_for(int64_t values) { return static_cast<unsigned>((values + kThreads - 1) / kThreads); }
__device__ __forceinline__ int64_t global_thread() { return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; }

__device__ __forceinline__ const bfloat16* token_of(const Factor& f, int64_t sample, int64_t token, int rank) {
  return f.data + sample * f.sample + token * f.token + rank * f.rank;
}

// C[n,m] = base[n,m] + sum_r down_rn up_rm + (n == m) gate_n. A thread has 8 neighbouring m.
template <int N>
__global__ void __launch_bounds__(kThreads) dcmha_matrices(ScoreBlock c, Factors query, Base base, bfloat16* matrices) {
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
  write_16(matrices + i * 8, {pack_bf16(value[0], value[1]), pack_bf16(value[2], value[3]),
                              pack_bf16(value[4], value[5]), pack_bf16(value[6], value[7])});
}

// The blocks of keys that are not all masked for a row: their partial sums exist.
struct KeyBlocks {
  int begin, end;
  __device__ __forceinline__ KeyBlocks(const ScoreBlock& c, int row) {
    const int first = max(0, row + c.begin_shift), last = min(c.key_columns, row + c.end_shift) - 1;
    begin = first / kBlockKeys;
    end = first > last ? begin : last / kBlockKeys + 1;
  }
};

// delta (samples, rows, N) from pairs (samples, rows, key_blocks, N): the sum of the first by that of the second
__global__ void dcmha_combine_delta(ScoreBlock c, int key_blocks, const float2* partial, float* delta) {
  const int64_t i = global_thread(), row = i / c.heads;
  if (row >= static_cast<int64_t>(c.samples) * c.rows) return;
  const KeyBlocks unmasked(c, static_cast<int>(row % c.rows));
  float sum = 0, total = 0;
  for (int b = unmasked.begin; b < unmasked.end; ++b) {
    const float2 part = partial[(row * key_blocks + b) * c.heads + i % c.heads];
    sum += part.x;
    total += part.y;
  }
  delta[i] = total > 0 ? sum / total : 0;
}

// With G the outer sum of a row: d_down_r[n] = sum_m G[n,m] up_r[m], d_up_r[m] = sum_n G[n,m] down_r[n], d_gate[n] =
// G[n,n], d_base[n,m] += G[n,m]. A block takes `rows_each` rows of one sample.
template <int N>
__global__ void __launch_bounds__(kThreads)
    dcmha_query_gradients(ScoreBlock c, int key_blocks, Factors query, const float* outer_sum, QueryGradients to,
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
      for (int k = 0; k < each; ++k) sum[k] += outer_sum[(at * key_blocks + b) * (N * N) + k * kThreads + thread];
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

// One thread for each token, part (down 0, down 1, up 0, up 1, gate) and head.
__global__ void dcmha_key_gradients(int heads, int segments, int64_t tokens, const float* d_keys, KeyGradients to) {
  const int64_t i = global_thread();
  if (i >= tokens * 5 * heads) return;
  float sum = 0;
  for (int s = 0; s < segments; ++s) sum += d_keys[s * tokens * 5 * heads + i];
  const int64_t token = i / heads / 5;
  const int part = static_cast<int>(i / heads % 5), head = static_cast<int>(i % heads), r = part % 2;
  if (part == 4) {
    if (to.gate) to.gate[token * heads + head] = bfloat16(sum);
  } else if (bfloat16* const data = part < 2 ? to.down : to.up; data && r < to.rank) {
    data[(token * to.rank + r) * heads + head] = bfloat16(sum);
  }
}

}  // namespace

void build_matrices(const ScoreBlock& c, const Factors& query, const Base& base, bfloat16* matrices) {
  const int64_t threads = static_cast<int64_t>(c.samples) * c.rows * c.heads * c.heads / 8;
  launch(c.heads == 16 ? dcmha_matrices<16> : dcmha_matrices<32>, {.grid = blocks_for(threads), .block = kThreads}, c,
         query, base, matrices);
}

void combine_delta(const ScoreBlock& c, const float* partial, float* delta) {
  const int64_t values = static_cast<int64_t>(c.samples) * c.rows * c.heads;
  launch(dcmha_combine_delta, {.grid = blocks_for(values), .block = kThreads}, c, c.key_blocks(),
         reinterpret_cast<const float2*>(partial), delta);
}

void query_gradients(const ScoreBlock& c, const Factors& query, const float* outer_sum, const QueryGradients& to,
                     float* d_base) {
  Factors factors = query;
  if (!to.down && !to.up) factors.rank = 0;
  // Rows are independent but for d(base): a row per block, since a block's time is the latency of its loads.
  const int rows_each = d_base ? kQueryBlockRows : 1;
  const unsigned blocks = static_cast<unsigned>((c.rows + rows_each - 1) / rows_each);
  launch(c.heads == 16 ? dcmha_query_gradients<16> : dcmha_query_gradients<32>,
         {.grid = dim3(blocks, static_cast<unsigned>(c.samples)), .block = kThreads}, c, c.key_blocks(), factors,
         outer_sum, to, d_base, rows_each);
}

void base_gradient(int heads, int parts, const float* d_base, bfloat16* gradient) {
  launch(dcmha_base_gradient, {.grid = blocks_for(heads * heads), .block = kThreads}, heads, parts, d_base, gradient);
}

void key_gradients(int heads, int segments, int64_t tokens, const float* d_keys, const KeyGradients& to) {
  launch(dcmha_key_gradients, {.grid = blocks_for(tokens * 5 * heads), .block = kThreads}, heads, segments, tokens,
         d_keys, to);
}

}  // namespace braid::cuda::attention::tensor_core
