// Rung 3b: rung 3 on top of rung 2. Every product by tensor cores, one kernel, and no score in the GPU's memory.
//
// Everything comes in sixteens. A block has 16 warps and owns 16 queries of a sample, all 16 heads; it walks along the
// keys 16 at a time. A warp has two jobs, and shared memory is where it hands over the scores:
//
//   warp = head     S = scale q k^T, 16 queries x 16 keys          -> scores[query][head][key]
//   warp = query    Compose, 16 keys x 16 heads                    <- the tile scores[query]
//   warp = head     y += P' v, 16 queries x d, y in registers      <- P' in place of S
//
// As in rung 2 there are two passes over the keys: Compose after softmax needs P of all heads, so a row's sums come
// first. They stay in the registers of the warp that owns the query: a lane has 4 heads and 2 of the 16 keys.
//
// What the library's kernels add to this: copies that arrive while the tile before is computed, two queries a warp, so
// that the fragments of a key's factors are loaded once for both, rows without padding, and 32 heads.
#include "tests/cuda/attention/ladder/mixing.cuh"
// (first: it includes kernel.h)
#include "braid/tensor/kernels/math.h"
#include "tests/cuda/attention/ladder/ladder.h"

namespace braid::ladder {

namespace {

using namespace on_tensor_cores;

constexpr int kQueries = 16, kThreads = 32 * N, kLargestSize = 64;
// From one row to the next in shared memory, in elements: multiples of 16 bytes that spread 8 rows over all banks.
constexpr int kPitch = kLargestSize + 8, kScorePitch = N * kTilePitch + 8;
constexpr float kLowest = -1e30f;  // the largest score of no keys; finite, so that differences are no NaN

struct Sizes {
  int B, T, S, d;
  float scale;
  AttentionMask mask;
  __device__ bool masked(int i, int j) const { return j < mask.first(i) || j >= mask.end(i, S); }
};
struct Arrays {
  const bfloat16 *q, *k, *v;
  bfloat16* y;
};

struct Memory {
  bfloat16 q[N][kQueries * kPitch];
  bfloat16 keys[N][kKeys * kPitch];                   // k of the tile, then v
  bfloat16 scores[kQueries * kScorePitch];            // of a query: [head][kTilePitch]
  KeyTiles factors[2];                                // before softmax, after it
  bfloat16 matrix[2][kQueries][N * kMatrixPitch<N>];  // C of each query, likewise
};

// 16 rows of x (B, tokens, N, d), from row `first` of sample b on, by all threads of the block, 16 bytes at a time;
// zeros beyond the last row and beyond d.
__device__ void load_rows(const bfloat16* x, int b, int first, int tokens, int d, bfloat16 (*to)[16 * kPitch]) {
  constexpr int kPieces = kLargestSize / 8;
  for (int at = static_cast<int>(threadIdx.x); at < 16 * N * kPieces; at += kThreads) {
    const int piece = at % kPieces, head = at / kPieces % N, row = at / kPieces / N;
    const bool valid = first + row < tokens && piece * 8 < d;
    const bfloat16* const from = x + (static_cast<int64_t>(b * tokens + first + row) * N + head) * d + piece * 8;
    cuda::write_16(to[head] + row * kPitch + piece * 8, valid ? cuda::read_16(from) : uint4{0, 0, 0, 0});
  }
}

// The block's work on a tile of 16 keys. All functions are called by all threads.
struct Tile {
  const Sizes& z;
  Memory& memory;
  int b, lane, warp;

  // The row whose address this lane passes for 16 x 16 elements: two tiles of 8 x 8 below each other, then the next
  // two.
  __device__ int operand_row(int pitch) const { return lane % 16 * pitch + lane / 16 * 8; }

  // warp = head: S of the keys from j0 on, and the factors of these keys for `stages` stages.
  __device__ void scores(const Arrays& x, const Mixing* const (&w)[2], int stages, int j0) const {
    __syncthreads();  // what lies in shared memory has been read
    load_rows(x.k, b, j0, z.S, z.d, memory.keys);
    for (int stage = 0; stage < stages; ++stage)
      copy_key_tiles(*w[stage], b * z.S + j0, z.S - j0, memory.factors[stage]);
    __syncthreads();
    float s[2][4] = {};  // keys 0 to 7, keys 8 to 15
    const int key_row = (lane / 16 * 8 + lane % 8) * kPitch + lane / 8 % 2 * 8;
    for (int e = 0; e < z.d; e += 16) {
      uint32_t q[4], k[4];
      cuda::ldmatrix(q, memory.q[warp] + operand_row(kPitch) + e);
      cuda::ldmatrix(k, memory.keys[warp] + key_row + e);
      cuda::mma_bf16(s[0], q, k[0], k[1]);
      cuda::mma_bf16(s[1], q, k[2], k[3]);
    }
    uint32_t pairs[4];
    for (int i = 0; i < 4; ++i)
      pairs[i] = cuda::pack_bf16(z.scale * s[i / 2][i % 2 * 2], z.scale * s[i / 2][i % 2 * 2 + 1]);
    cuda::stmatrix(memory.scores + operand_row(kScorePitch) + warp * kTilePitch, pairs);
    __syncthreads();
  }

  // warp = query: its tile of 16 keys x 16 heads.
  __device__ bfloat16* own_scores() const { return memory.scores + warp * kScorePitch + tile_row(lane); }
  __device__ void composed(int stage, const AFragment<N>& a, Accumulator<N>& x, DiagonalFragments& h) const {
    compose(x, a, memory.factors[stage], memory.matrix[stage][warp], h);
  }

  // warp = head: y += P' v.
  __device__ void add_values(const Arrays& x, int j0, float (&y)[kLargestSize / 8][4]) const {
    load_rows(x.v, b, j0, z.S, z.d, memory.keys);  // nobody needs k any more
    __syncthreads();                               // v is there, and so are the weights of all queries
    uint32_t p[4], v[4];
    cuda::ldmatrix(p, memory.scores + operand_row(kScorePitch) + warp * kTilePitch);
#pragma unroll
    for (int n = 0; n < kLargestSize / 8; n += 2) {  // the size is a constant, so that y stays in registers
      if (8 * n >= z.d) break;
      cuda::ldmatrix<true>(v, memory.keys[warp] + operand_row(kPitch) + 8 * n);
      cuda::mma_bf16(y[n], p, v[0], v[1]);
      cuda::mma_bf16(y[n + 1], p, v[2], v[3]);
    }
  }
};

__global__ void __launch_bounds__(kThreads, 1) attention(Sizes z, Mixing pre, Mixing post, Arrays x) {
  Memory& memory = *cuda::dynamic_shared<Memory>();
  DiagonalFragments h;  // (uses the same memory, first)
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int b = static_cast<int>(blockIdx.y), i0 = static_cast<int>(blockIdx.x) * kQueries;
  const int i = i0 + warp < z.T ? i0 + warp : z.T - 1;  // warps beyond the last row repeat it
  const Mixing* const stages[2] = {&pre, &post};
  const Tile tile{z, memory, b, lane, warp};
  load_rows(x.q, b, i0, z.T, z.d, memory.q);
  for (int stage = 0; stage < 2; ++stage) {
    for (int at = lane; at < N * N; at += 32)
      memory.matrix[stage][warp][at / N * kMatrixPitch<N> + at % N] =
          matrix_element(*stages[stage], b * z.T + i, at / N, at % N);
  }
  const int last_row = i0 + kQueries - 1 < z.T ? i0 + kQueries - 1 : z.T - 1;
  const int end = static_cast<int>(z.mask.end(last_row, z.S));  // of the block's keys

  // First pass: the largest score and the sum of exponentials, of this lane's heads c, c + 1, c + 8, c + 9, c = lane %
  // 4
  // * 2, and its keys lane / 4 and lane / 4 + 8 of each tile.
  float largest[4], sum[4];
  for (int n = 0; n < 4; ++n) largest[n] = kLowest, sum[n] = 0;
  AFragment<N> a;
  Accumulator<N> s;
  for (int j0 = 0; j0 < end; j0 += kKeys) {
    tile.scores(x, stages, 1, j0);
    load_a<N>(a, tile.own_scores());
    tile.composed(0, a, s, h);
    for (int half = 0; half < 2; ++half) {
      if (z.masked(i, j0 + lane / 4 + 8 * half)) continue;
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const float score = s[n / 2][2 * half + n % 2], before = largest[n];
        largest[n] = fmaxf(before, score);
        sum[n] = sum[n] * math::exp(before - largest[n]) + math::exp(score - largest[n]);
      }
    }
  }
  for (int n = 0; n < 4; ++n) {  // the 8 lanes that have the same heads
    for (int bits = 4; bits < 32; bits *= 2) {
      const float other = __shfl_xor_sync(~0u, largest[n], bits), all = fmaxf(largest[n], other);
      sum[n] *= math::exp(largest[n] - all);
      sum[n] += __shfl_xor_sync(~0u, sum[n], bits);
      largest[n] = all;
    }
  }

  // Second pass: the scores again, P, P' = Compose(P), y.
  float y[kLargestSize / 8][4] = {};
  for (int j0 = 0; j0 < end; j0 += kKeys) {
    tile.scores(x, stages, 2, j0);
    load_a<N>(a, tile.own_scores());
    tile.composed(0, a, s, h);
    for (int stage = 0; stage < 2; ++stage) {  // softmax behind the first mixing, nothing behind the second
      for (int half = 0; half < 2; ++half) {
        const bool masked = z.masked(i, j0 + lane / 4 + 8 * half);
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          float& value = s[n / 2][2 * half + n % 2];
          value = masked ? 0 : stage == 0 ? math::exp(value - largest[n]) / sum[n] : value;
        }
      }
      pack<N>(a, s);
      if (stage == 0) tile.composed(1, a, s, h);
    }
    store_a<N>(tile.own_scores(), a);
    tile.add_values(x, j0, y);
  }

  for (int half = 0; half < 2; ++half) {
    const int row = i0 + lane / 4 + 8 * half;
    if (row >= z.T) continue;
    bfloat16* const to = x.y + (static_cast<int64_t>(b * z.T + row) * N + warp) * z.d + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < kLargestSize / 8; ++n) {
      if (8 * n >= z.d) break;
      to[8 * n] = bfloat16(y[n][2 * half]), to[8 * n + 1] = bfloat16(y[n][2 * half + 1]);
    }
  }
}

}  // namespace

void fused(const DcmhaInputs& x, Tensor& y) {
  const Sizes z{static_cast<int>(x.q.dim(0)), static_cast<int>(x.q.dim(1)), static_cast<int>(x.k.dim(1)),
                static_cast<int>(x.q.dim(3)), static_cast<float>(x.scale),  x.mask};
  const unsigned blocks = static_cast<unsigned>((z.T + kQueries - 1) / kQueries);
  cuda::launch(attention,
               {.grid = dim3(blocks, static_cast<unsigned>(z.B)), .block = kThreads, .shared_bytes = sizeof(Memory)}, z,
               Mixing(x.pre), Mixing(x.post),
               Arrays{x.q.data<bfloat16>(), x.k.data<bfloat16>(), x.v.data<bfloat16>(), y.mutable_data<bfloat16>()});
}

}  // namespace braid::ladder
