// Rung 3: products on tensor cores, in bf16. As in rung 1 scores lie in memory between the kernels, but now every step
// that multiplies does so by mma_bf16:
//
//   S = scale q k^T and y = P' v   batched products, cuda/matmul/matmul.h
//   Compose                        a warp mixes 16 keys of one query, N = 16 heads, with the fragments of tile.cuh
#include "tests/cuda/attention/ladder/mixing.cuh"
// (first: it includes kernel.h)
#include "braid/cuda/matmul/matmul.h"
#include "braid/tensor/kernels/math.h"
#include "tests/cuda/attention/ladder/ladder.h"

namespace braid::ladder {

namespace {

using namespace on_tensor_cores;

constexpr int kThreads = 128;

// Scores are bf16 (B, N, T, columns): S rounded up to tiles, the columns beyond S are zeros.
struct Sizes {
  int B, T, S, columns;
  AttentionMask mask;
};

// C (B, T, N, N): head read, head written.
__global__ void query_matrices(Sizes z, Mixing w, bfloat16* matrices) {
  const int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), query = index / (N * N);
  if (query < z.B * z.T) matrices[index] = matrix_element(w, query, index / N % N, index % N);
}

// Shared memory of a warp.
struct Memory {
  bfloat16 scores[N * kTilePitch];
  KeyTiles factors;
  bfloat16 matrix[N * kMatrixPitch<N>];
};

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
  copy_key_tiles(w, b * z.S + j0, z.S - j0, memory.factors);
  __syncwarp();

  AFragment<N> a;
  Accumulator<N> x;
  const int row = tile_row(lane);
  load_a<N>(a, memory.scores + row);
  compose(x, a, memory.factors, memory.matrix, h);
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
    const Mixing w(weights);
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
