// Rung 2: tiles in shared memory. One kernel, and no score goes to memory.
//
// A block owns 4 query rows of a sample, one warp each, and walks along the keys 32 at a time: lane = key. A thread
// holds the scores of its pair for all heads, since mixing needs them together. Keys and values come head by head into
// shared memory, where the 4 rows share them.
//
// Compose after softmax needs P of all heads, so the row's sums must be known first: two passes over the keys. The
// first finds the largest score and the sum of exponentials of each head (the sum is corrected whenever the largest
// grows: online softmax), the second computes the scores again and adds P' v.
#include "tests/cuda/attention/ladder/formula.cuh"
// (first: it includes kernel.h)
#include "braid/cuda/device/reduce.cuh"
#include "braid/tensor/kernels/math.h"
#include "tests/cuda/attention/ladder/ladder.h"

namespace braid::ladder {

namespace {

constexpr int N = 16, kRows = 4, kKeys = 32, kThreads = kRows * 32;
constexpr float kLowest = -1e30f;  // the largest score of no keys; finite, so that differences are no NaN

struct Arrays {
  const float *q, *k, *v;
  float* y;
};

// The block's shared memory.
struct Memory {
  float *q, *y;  // [kRows][N d]
  float* tile;   // [kKeys][d + 1] of one head; one element of padding spreads the keys over the banks
  float* p;      // [kRows][kKeys] of one head
  __device__ explicit Memory(int d) {
    q = cuda::dynamic_shared<float>();
    y = q + kRows * N * d;
    tile = y + kRows * N * d;
    p = tile + kKeys * (d + 1);
  }
  static size_t bytes(int d) {
    return sizeof(float) * static_cast<size_t>(2 * kRows * N * d + kKeys * (d + 1) + kRows * kKeys);
  }
};

// Head n of 32 keys of x (B, S, N, d), zeros beyond S; all threads of the block together.
__device__ void load_tile(const Sizes& z, const float* x, int b, int j0, int n, float* tile) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  __syncthreads();                                   // all threads have read the previous tile
  for (int key = warp; key < kKeys; key += kRows) {  // a warp a row: no division finds a thread's place
    const float* row = x + ((b * z.S + j0 + key) * N + n) * z.d;
    for (int e = lane; e < z.d; e += 32) tile[key * (z.d + 1) + e] = j0 + key < z.S ? row[e] : 0;
  }
  __syncthreads();
}

__global__ void attention(Sizes z, Mixing pre, Mixing post, Arrays x) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int b = static_cast<int>(blockIdx.y), row = static_cast<int>(blockIdx.x) * kRows + warp;
  const int i = row < z.T ? row : z.T - 1;  // warps beyond the last row repeat it and write nothing
  const Memory memory(z.d);
  float *const q = memory.q + warp * N * z.d, *const y = memory.y + warp * N * z.d, *const p = memory.p + warp * kKeys;
  for (int at = lane; at < N * z.d; at += 32) {
    q[at] = x.q[(b * z.T + i) * N * z.d + at];
    y[at] = 0;
  }

  // s = Compose_pre(scale q k^T) of this thread's pair.
  const auto composed_scores = [&](int j0, float(&s)[N]) {
    float a[N];
    for (int n = 0; n < N; ++n) {
      load_tile(z, x.k, b, j0, n, memory.tile);
      float sum = 0;
      for (int e = 0; e < z.d; ++e) sum += q[n * z.d + e] * memory.tile[lane * (z.d + 1) + e];
      a[n] = z.scale * sum;
    }
    mix_heads(z, pre, b, i, j0 + lane < z.S ? j0 + lane : z.S - 1, a, s);
  };
  const int last_row = static_cast<int>(blockIdx.x) * kRows + kRows - 1;
  const int end = static_cast<int>(z.mask.end(last_row < z.T ? last_row : z.T - 1, z.S));  // of the block's keys

  float largest[N], sum[N];
  for (int n = 0; n < N; ++n) largest[n] = kLowest, sum[n] = 0;
  for (int j0 = 0; j0 < end; j0 += kKeys) {
    const bool masked = z.masked(i, j0 + lane);
    float s[N];
    composed_scores(j0, s);
    for (int n = 0; n < N; ++n) {
      const float before = largest[n];
      largest[n] = cuda::larger(before, cuda::warp_max(masked ? kLowest : s[n]));
      const float part = cuda::warp_sum(masked ? 0.0f : math::exp(s[n] - largest[n]));
      sum[n] = sum[n] * math::exp(before - largest[n]) + part;
    }
  }

  for (int j0 = 0; j0 < end; j0 += kKeys) {
    const bool masked = z.masked(i, j0 + lane);
    float s[N], weights[N];
    composed_scores(j0, s);
    for (int n = 0; n < N; ++n) s[n] = masked ? 0 : math::exp(s[n] - largest[n]) / sum[n];
    mix_heads(z, post, b, i, j0 + lane < z.S ? j0 + lane : z.S - 1, s, weights);
    for (int n = 0; n < N; ++n) {
      load_tile(z, x.v, b, j0, n, memory.tile);
      p[lane] = weights[n];
      __syncwarp();
      for (int e = lane; e < z.d; e += 32) {
        float total = y[n * z.d + e];
        for (int key = 0; key < kKeys; ++key) total += p[key] * memory.tile[key * (z.d + 1) + e];
        y[n * z.d + e] = total;
      }
    }
  }
  __syncwarp();
  for (int at = lane; row < z.T && at < N * z.d; at += 32) x.y[(b * z.T + row) * N * z.d + at] = y[at];
}

}  // namespace

void tiled(const DcmhaInputs& x, Tensor& y) {
  const Sizes z(x);
  const unsigned blocks = static_cast<unsigned>((z.T + kRows - 1) / kRows);
  cuda::launch(
      attention,
      {.grid = dim3(blocks, static_cast<unsigned>(z.B)), .block = kThreads, .shared_bytes = Memory::bytes(z.d)}, z,
      Mixing(x.pre), Mixing(x.post),
      Arrays{x.q.data<float>(), x.k.data<float>(), x.v.data<float>(), y.mutable_data<float>()});
}

}  // namespace braid::ladder
