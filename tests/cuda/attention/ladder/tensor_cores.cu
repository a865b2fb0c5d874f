// Rung 3: products on tensor cores, in bf16. As in rung 1 scores lie in memory between the kernels, but now every step
// that multiplies does so by mma_bf16:
//
//   S = scale q k^T and y = P' v   batched products, cuda/matmul/matmul.h
//   Compose                        a warp mixes 16 keys of one query, N = 16 heads, with the fragments of tile.cuh
//
// Mixing as products: all that depends on the query alone is one matrix C(i) = base + sum_r q_down_r q_up_r^T +
// diag(q_gate), and the tile (16 keys x 16 heads) times C is 2 instructions. A key's factors need the sum over heads
// h_r(j) = sum_n k_down_rn(j) a[j,n]: the diagonal of the product of the tile and down_r^T. As a diagonal matrix it is
// the left operand of the product that adds k_up_r h_r.
#include "braid/cuda/device/kernel.h"
// (kernel.h first: the headers below use it)
#include "braid/cuda/attention/tile.cuh"
#include "braid/cuda/matmul/matmul.h"
#include "braid/tensor/kernels/math.h"
#include "tests/cuda/attention/ladder/ladder.h"

namespace braid::ladder {

namespace {

using namespace cuda::attention::tensor_core;

constexpr int N = 16, kKeys = 16, kThreads = 128;

// Scores are bf16 (B, N, T, columns): S rounded up to tiles, the columns beyond S are zeros.
struct Sizes {
  int B, T, S, columns;
  AttentionMask mask;
};
struct Mixing {
  const bfloat16 *base, *q_down, *q_up, *q_gate, *k_down, *k_up, *k_gate;
  int q_rank, k_rank;
};

// C (B, T, N, N): head read, head written.
__global__ void query_matrices(Sizes z, Mixing w, bfloat16* matrices) {
  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int query = index / (N * N), n = index / N % N, m = index % N;
  if (query >= z.B * z.T) return;
  float value = static_cast<float>(w.base[n * N + m]);
  for (int r = 0; r < w.q_rank; ++r) {
    const int factor = (query * w.q_rank + r) * N;
    value += static_cast<float>(w.q_down[factor + n]) * static_cast<float>(w.q_up[factor + m]);
  }
  if (n == m) value += static_cast<float>(w.q_gate[query * N + n]);
  matrices[index] = bfloat16(value);
}

// Shared memory of a warp. A tile is [head][kTilePitch], 16 keys of each head.
struct Memory {
  bfloat16 scores[N * kTilePitch];
  bfloat16 down[2][N * kTilePitch], up[2][N * kTilePitch], gate[N * kTilePitch];
  bfloat16 matrix[N * kMatrixPitch<N>];
};

// One tile of a factor of the keys, (tokens, N) with `step` elements from token to token; zeros where it is absent.
__device__ void copy_factor(const bfloat16* from, int step, int keys, bfloat16* tile) {
  for (int at = static_cast<int>(threadIdx.x); at < kKeys * N; at += 32) {
    const int key = at / N, head = at % N;
    tile[head * kTilePitch + key] = from != nullptr && key < keys ? from[key * step + head] : bfloat16(0.0f);
  }
}

// scores = Compose(scores) in place, or `masked` where masked. A block is one warp: 16 keys of query i of sample b.
__global__ void mix(Sizes z, Mixing w, const bfloat16* matrices, bfloat16 masked, bfloat16* scores) {
  const int lane = static_cast<int>(threadIdx.x), j0 = static_cast<int>(blockIdx.x) * kKeys;
  const int i = static_cast<int>(blockIdx.y), b = static_cast<int>(blockIdx.z);
  Memory& memory = *cuda::dynamic_shared<Memory>();
  DiagonalFragments h;

  // Into shared memory: the tile, the matrix of the query, the factors of the keys.
  bfloat16* const tile = scores + (static_cast<int64_t>(b) * N * z.T + i) * z.columns + j0;  // of head 0
  for (int at = lane; at < N * kKeys; at += 32) {
    const int head = at / kKeys, key = at % kKeys;
    memory.scores[head * kTilePitch + key] = tile[static_cast<int64_t>(head) * z.T * z.columns + key];
    memory.matrix[at / N * kMatrixPitch<N> + at % N] = matrices[(b * z.T + i) * N * N + at];
  }
  const int first = b * z.S + j0, keys = z.S - j0;
  for (int r = 0; r < 2; ++r) {
    const bool present = r < w.k_rank;
    const int factor = (first * w.k_rank + r) * N;
    copy_factor(present ? w.k_down + factor : nullptr, w.k_rank * N, keys, memory.down[r]);
    copy_factor(present ? w.k_up + factor : nullptr, w.k_rank * N, keys, memory.up[r]);
  }
  copy_factor(w.k_gate + first * N, N, keys, memory.gate);
  __syncwarp();

  // From shared memory to fragments: each lane passes the address of one row of 8 elements.
  const int row = tile_row(lane);
  AFragment<N> a, gate;
  load_a<N>(a, memory.scores + row);
  load_a<N>(gate, memory.gate + row);
  Accumulator<N> x;
  unpack<N>(x, a);  // the identity in Compose, exact in f32
  const uint32_t diagonal = diagonal_mask(lane);
  for (int r = 0; r < 2; ++r) {
    AFragment<N> down;
    BFragment<N> up;
    load_a<N>(down, memory.down[r] + row);
    load_b<N>(up, memory.up[r] + row);
    sum_heads<N>(h.rank[r], a, down, diagonal);  // h_r, as a diagonal matrix
    add_scaled<N>(x, h.rank[r], up);
  }
  add_product<N, true>(x, a, gate, diagonal);
  add_mixed<N, false>(x, a, memory.matrix + matrix_row<N>(lane));  // x += a C
  pack<N>(a, x);
  store_a<N>(memory.scores + row, a);
  __syncwarp();

  for (int at = lane; at < N * kKeys; at += 32) {
    const int head = at / kKeys, key = at % kKeys, j = j0 + key;
    const bool keep = j >= z.mask.first(i) && j < z.mask.end(i, z.S);
    tile[static_cast<int64_t>(head) * z.T * z.columns + key] = keep ? memory.scores[head * kTilePitch + key] : masked;
  }
}

// A row of columns, in place; zeros where all are masked.
__global__ void softmax_rows(Sizes z, bfloat16* scores) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= z.B * N * z.T) return;
  bfloat16* const x = scores + static_cast<int64_t>(row) * z.columns;
  float largest = -INFINITY, sum = 0;
  for (int j = 0; j < z.columns; ++j) largest = fmaxf(largest, static_cast<float>(x[j]));
  for (int j = 0; j < z.columns; ++j)
    sum += static_cast<float>(x[j]) == -INFINITY ? 0.0f : math::exp(static_cast<float>(x[j]) - largest);
  for (int j = 0; j < z.columns; ++j) {
    const float score = static_cast<float>(x[j]);
    x[j] = bfloat16(score == -INFINITY ? 0.0f : math::exp(score - largest) / sum);
  }
}

Mixing mixing_of(const HeadMixing& c) {
  return {.base = c.base.data<bfloat16>(),
          .q_down = c.q_down.data<bfloat16>(),
          .q_up = c.q_up.data<bfloat16>(),
          .q_gate = c.q_gate.data<bfloat16>(),
          .k_down = c.k_down.data<bfloat16>(),
          .k_up = c.k_up.data<bfloat16>(),
          .k_gate = c.k_gate.data<bfloat16>(),
          .q_rank = static_cast<int>(c.q_down.dim(3)),
          .k_rank = static_cast<int>(c.k_down.dim(3))};
}

}  // namespace

void tensor_cores(const DcmhaInputs& x, Tensor& y) {
  const int64_t B = x.q.dim(0), T = x.q.dim(1), S = x.k.dim(1), columns = (S + kKeys - 1) / kKeys * kKeys;
  const Sizes z{static_cast<int>(B), static_cast<int>(T), static_cast<int>(S), static_cast<int>(columns), x.mask};
  const Device device = x.q.device();
  Tensor scores = empty({B, N, T, columns}, DType::bf16, device), matrices = empty({B, T, N, N}, DType::bf16, device);
  scores.fill(0);
  bfloat16 *const s = scores.mutable_data<bfloat16>(), *const c = matrices.mutable_data<bfloat16>();
  const auto heads_first = [](const Tensor& t) { return t.transposed(1, 2); };  // (B, T, N, d) -> (B, N, T, d)
  const auto one_thread_each = [](int64_t count) {
    return cuda::Launch{.grid = static_cast<unsigned>((count + kThreads - 1) / kThreads), .block = kThreads};
  };
  const auto compose = [&](const HeadMixing& weights, float masked) {
    const Mixing w = mixing_of(weights);
    cuda::launch(query_matrices, one_thread_each(B * T * N * N), z, w, c);
    const dim3 tiles(static_cast<unsigned>(columns / kKeys), static_cast<unsigned>(T), static_cast<unsigned>(B));
    cuda::launch(mix, {.grid = tiles, .block = 32, .shared_bytes = sizeof(Memory)}, z, w, c, bfloat16(masked), s);
  };

  Tensor keys = scores.sliced(3, 0, S), out = heads_first(y);
  cuda::matmul(heads_first(x.q), heads_first(x.k).transposed(), x.scale, 0, keys);
  compose(x.pre, -INFINITY);
  cuda::launch(softmax_rows, one_thread_each(B * N * T), z, s);
  compose(x.post, 0);
  cuda::matmul(keys, heads_first(x.v), 1, 0, out);
}

}  // namespace braid::ladder
