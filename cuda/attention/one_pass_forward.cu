// DCMHA forward in one kernel: no score in the GPU's memory. For 16 heads of at most 64 elements.
//
// A block of threads keeps 32 queries of all heads in shared memory and passes over their keys twice, 16 keys at a
// time: the first time for the log-sum-exp of the rows, since the weights after softmax are mixed over heads, so that
// no sum can be divided by afterwards; the second time for y. Per tile of 32 queries, 16 keys and 16 heads:
//
//   warp = head      S = scale q k^T, bf16 to shared memory
//   warp = 2 rows    first: log-sum of compose_pre(S); second: P' = compose_post(exp(compose_pre(S) - lse)), in place
//   warp = head      second: y += P' v, in registers
//
// Scores are rounded as the product of tensor_core.cpp rounds them, which backward uses.
#include "braid/cuda/device/kernel.h"
// (kernel.h first: the header below uses it)
#include "braid/cuda/attention/columns.cuh"

namespace braid::cuda::attention::tensor_core {
namespace {

constexpr int N = kOnePassHeads, kDepth = kOnePassDepth;  // d, filled up with zeros
constexpr int kQueries = kOnePassRows, kKeys = 16;        // of a tile
constexpr int kThreadsOfBlock = 32 * N, kRowsOfWarp = kQueries / N;
constexpr int kPieces = kDepth / 8;            // of 16 bytes, of a row of q, k or v
constexpr int kScoreRow = N * kTilePitch + 8;  // from one query's scores to the next: spread over banks
constexpr int kFactorTile = kKeys * kMatrixPitch<N>;

struct OnePassMemory {
  bfloat16 q[N][kQueries * kDepth];
  bfloat16 keys[2][N][kKeys * kDepth];    // k of two tiles; in the second pass k and v of one
  bfloat16 factors[2][10 * kFactorTile];  // of two tiles: five before softmax, five after
  bfloat16 matrix[2][kQueries][N * kMatrixPitch<N>];
  bfloat16 scores[kQueries][kScoreRow];  // [head][kTilePitch]
  float lse[kQueries][N];
};

// Rows of 128 bytes without padding: the pieces of row r change places by r, so that a column of 8 rows has all banks.
__device__ __forceinline__ int piece_of(int row, int piece) { return row * kDepth + ((piece ^ (row & 7)) << 3); }

// Fragments of the keys' factors of a tile, as KeyFactors loads them.
struct TileFactors {
  const bfloat16* row;
  __device__ __forceinline__ void load_a(AFragment<N>& w, int tile) const { ldmatrix(w[0], row + tile * kFactorTile); }
  __device__ __forceinline__ void load_b(BFragment<N>& w, int tile) const {
    ldmatrix<true>(w[0], row + tile * kFactorTile);
  }
};

// The copies of a thread. Behind the last key the source is the last key, of which nothing is copied.
class Copies {
 public:
  __device__ __forceinline__ Copies(OnePassMemory& memory, const OnePass& c, int sample)
      : memory_(memory), c_(c), sample_(sample) {
    const int thread = static_cast<int>(threadIdx.x), piece = thread % kPieces, key = thread / kPieces % kKeys;
    const int head = thread / (kPieces * kKeys);
    from_ = kept(min(head, c.key_heads - 1) * c.key_head + min(piece, c.d / 8 - 1) * 8);
    to_ = kept_shared(memory.keys[0][head] + piece_of(key, piece));
  }

  // The block's queries and their matrices. Rows behind the last are zeros, of the matrices left out.
  __device__ __forceinline__ void queries(int first, int rows) const {
    const int thread = static_cast<int>(threadIdx.x), piece = thread % kPieces, row = thread / kPieces % kQueries;
    const bool valid = row < rows && piece < c_.d / 8;
    const bfloat16* const from = c_.q + int64_t{sample_} * c_.query_sample + (first + row) * c_.query_token + piece * 8;
#pragma unroll 1
    for (int head = thread / (kPieces * kQueries); head < N; head += kThreadsOfBlock / (kPieces * kQueries))
      copy_async<16>(memory_.q[head] + piece_of(row, piece), valid ? from + head * c_.query_head : nullptr, valid);
    constexpr int pieces = N / 8, each = N * pieces;  // of a row of a matrix, of a matrix
    const int64_t at = (static_cast<int64_t>(blockIdx.y) * c_.rows + first - c_.first_row) * (N * N);
#pragma unroll 1
    for (int i = thread; i < kQueries * each; i += kThreadsOfBlock) {
      if (i / each >= rows) break;
      const int to = i % each / pieces * kMatrixPitch<N> + i % pieces * 8;
      copy_async<16>(memory_.matrix[0][i / each] + to, c_.pre + at + i * 8);
      copy_async<16>(memory_.matrix[1][i / each] + to, c_.post + at + i * 8);
    }
  }
  // 16 keys, or their values; zeros behind the last one.
  __device__ __forceinline__ void keys(const bfloat16* x, int buffer, int first) const {
    const int key = first + static_cast<int>(threadIdx.x / kPieces % kKeys);
    const bool valid = key < c_.keys && static_cast<int>(threadIdx.x % kPieces) < c_.d / 8;
    const int sample = c_.first_sample + kept(static_cast<int>(blockIdx.y));
    const bfloat16* from = x + int64_t{sample} * c_.key_sample + (from_ + min(key, c_.keys - 1) * c_.key_token);
    const int64_t step = int64_t{kHeads} * c_.key_head;
#pragma unroll
    for (int i = 0; i < N; i += kHeads, from += step) {
      if (i < c_.key_heads) copy_async<16>(to_ + (buffer * N + i) * (kKeys * kDepth), from, valid);
    }
  }
  // The factors of 16 keys, those behind the last one zeros.
  __device__ __forceinline__ void factors(int stage, int first) const {
    const int piece = kept(static_cast<int>(threadIdx.x)), left = (c_.keys - first) * kFactorPieces;
    if (piece >= kKeys * kFactorPieces) return;
    const int key = piece / kFactorPieces, part = piece % kFactorPieces;  // a key's factors lie together
    bfloat16* const to =
        memory_.factors[stage] + part / (N / 8) * kFactorTile + key * kMatrixPitch<N> + part % (N / 8) * 8;
    const bfloat16* const from =
        c_.key_factors + (static_cast<int64_t>(blockIdx.y) * c_.keys + first) * (kFactorPieces * 8);
    copy_async<16>(to, from + min(piece, left - 1) * 8, piece < left);
  }

 private:
  static constexpr int kHeads = kThreadsOfBlock / (kPieces * kKeys);  // of keys, that are copied at a time
  static constexpr int kFactorPieces = 10 * N / 8;                    // of a key
  OnePassMemory& memory_;
  const OnePass& c_;
  const int sample_;
  int from_;
  bfloat16* to_;
};

__global__ void __launch_bounds__(kThreadsOfBlock, 1) dcmha_one_pass(OnePass c) {
  OnePassMemory& memory = *dynamic_shared<OnePassMemory>();
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  // The rows with most keys come first: the last blocks are short.
  const int first = c.first_row + static_cast<int>(gridDim.x - 1 - blockIdx.x) * kQueries;
  const int rows = min(kQueries, c.first_row + c.rows - first), sample = c.first_sample + static_cast<int>(blockIdx.y);
  const int begin = max(0, first + c.begin_shift) / kKeys * kKeys, end = min(c.keys, first + rows - 1 + c.end_shift);
  const uint32_t diagonal = kept(diagonal_mask(lane));
  const Copies copies(memory, c, sample);

  const int row0 = warp * kRowsOfWarp;  // of this warp's rows
  const auto unmasked = [&](int row, int key) -> Unmasked {
    const int t = first + row;
    return {max(0, t + c.begin_shift - key), row < rows ? min(kKeys, min(c.keys, t + c.end_shift) - key) : 0};
  };
  // Whether the keys of a tile are unmasked for all rows of the warp.
  const auto all_unmasked = [&](int key) {
    const int t = first + row0;
    return row0 + kRowsOfWarp <= rows && t + kRowsOfWarp - 1 + c.begin_shift <= key &&
           key + kKeys <= min(c.keys, t + c.end_shift);
  };
  // The addresses that this lane passes to ldmatrix and stmatrix.
  const int key_head = warp / (N / c.key_heads);
  const bfloat16* const k_row = kept_shared(memory.keys[0][key_head] + (lane / 16 * 8 + lane % 8) * kDepth);
  bfloat16* const score_rows = kept_shared(memory.scores[lane % 16] + warp * kTilePitch + lane / 16 * 8);
  const auto factor_row = [&](int stage) {  // here and below, kept() stands before what is computed anew for each tile
    const int again = kept(lane);
    return memory.factors[stage] + again % 16 * kMatrixPitch<N> + again / 16 * 8;
  };
  constexpr int next_keys = N * kKeys * kDepth, next_mixing = 5 * kFactorTile;

  // S of the tile whose keys lie in `buffer`, for head `warp`.
  const auto scores = [&](int buffer) {
    const int thread = kept(static_cast<int>(threadIdx.x));
    const bfloat16* const q_row = memory.q[0] + (thread / 32 * kQueries + thread % 16) * kDepth;
    const int q_piece = (thread / 16 % 2 ^ thread % 8) << 3, k_piece = (thread / 8 % 2 ^ thread % 8) << 3;
    float x[2][2][4] = {};
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) {
      uint32_t b[4];  // of keys 0-7 two tiles of 8 elements, of keys 8-15
      ldmatrix(b, k_row + buffer * next_keys + (k_piece ^ 16 * k));
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        uint32_t a[4];
        ldmatrix(a, q_row + m * 16 * kDepth + (q_piece ^ 16 * k));
        mma_bf16(x[m][0], a, b[0], b[1]);
        mma_bf16(x[m][1], a, b[2], b[3]);
      }
    }
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      uint32_t pairs[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        pairs[i] = pack_bf16(c.scale * x[m][i / 2][i % 2 * 2], c.scale * x[m][i / 2][i % 2 * 2 + 1]);
      stmatrix(score_rows + m * 16 * kScoreRow, pairs);
    }
  };

  copies.queries(first, rows);
  if (begin < end) {
    copies.keys(c.k, 0, begin);
    copies.factors(0, begin);
  }
  copy_async_commit();

  // ---- first pass: lse ----
  {
    const uint32_t one = diagonal & 0x3f803f80u, identity[4] = {one, kept(0u), kept(0u), one};
    const bfloat16* const columns =
        kept_shared(memory.scores[row0] + (lane / 8 % 2 * 8 + lane % 8) * kTilePitch + lane / 16 * 8);
    const bfloat16* const matrix = kept_shared(memory.matrix[0][row0] + transposed_row<N>(lane));
    float largest[kRowsOfWarp][2], sum[kRowsOfWarp][2];  // of heads g, g + 8 and this lane's keys
#pragma unroll
    for (int r = 0; r < kRowsOfWarp; ++r) {
      largest[r][0] = largest[r][1] = kLowest;
      sum[r][0] = sum[r][1] = 0;
    }
#pragma unroll 1
    for (int key = begin, stage = 0; key < end; key += kKeys, stage ^= 1) {
      copy_async_wait<0>();
      __syncthreads();  // this tile is there, and the scores before it are read
      if (key + kKeys < end) {
        copies.keys(c.k, stage ^ 1, key + kKeys);
        copies.factors(stage ^ 1, key + kKeys);
      }
      copy_async_commit();
      scores(stage);
      __syncthreads();
      const bool all = all_unmasked(key);
      const ColumnWeights<N> weights(TileFactors{factor_row(stage)});
#pragma unroll
      for (int r = 0; r < kRowsOfWarp; ++r) {
        if (!all && unmasked(row0 + r, key).none()) continue;
        float x[2][1][4];
        compose_columns<N>(x, columns + r * kScoreRow, matrix + r * (N * kMatrixPitch<N>), weights, diagonal, identity);
        if (!all) {
          const Unmasked u = unmasked(row0 + r, key);
#pragma unroll
          for (int i = 0; i < 4; ++i) {  // keys
            if (u.masks(i / 2 * 8 + lane % 4 * 2 + i % 2)) x[i / 2][0][i % 2] = x[i / 2][0][2 + i % 2] = -INFINITY;
          }
        }
#pragma unroll
        for (int n = 0; n < 2; ++n) {  // heads 8n + g
          const float v[4] = {x[0][0][2 * n], x[0][0][2 * n + 1], x[1][0][2 * n], x[1][0][2 * n + 1]};
          const float before = largest[r][n], m = fmaxf(before, fmaxf(fmaxf(v[0], v[1]), fmaxf(v[2], v[3])));
          float s = sum[r][n] * exp2_approx((before - m) * kLog2e);
#pragma unroll
          for (int i = 0; i < 4; ++i) s += exp2_approx(fmaf(v[i], kLog2e, -kLog2e * m));
          largest[r][n] = m;
          sum[r][n] = s;
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kRowsOfWarp; ++r) {
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        float m = largest[r][n];
        m = fmaxf(m, __shfl_xor_sync(~0u, m, 1));
        m = fmaxf(m, __shfl_xor_sync(~0u, m, 2));
        float s = sum[r][n] * exp2_approx((largest[r][n] - m) * kLog2e);
        s += __shfl_xor_sync(~0u, s, 1);
        s += __shfl_xor_sync(~0u, s, 2);
        if (lane % 4 != 0) continue;
        const float lse = s > 0 ? m + log2f(s) * kLn2 : INFINITY;
        const int row = row0 + r, head = 8 * n + lane / 4;
        memory.lse[row][head] = lse;
        if (c.lse && row < rows) c.lse[(static_cast<int64_t>(sample) * c.queries + first + row) * N + head] = lse;
      }
    }
  }

  // ---- second pass: y ----
  __syncthreads();  // the first pass has read its last tile
  if (begin < end) {
    copies.keys(c.k, 0, begin);
    copies.factors(0, begin);
  }
  copy_async_commit();
  bfloat16* const tile = kept_shared(memory.scores[row0] + tile_row(lane));
  float y[2][kPieces][4] = {};
#pragma unroll 1
  for (int key = begin, stage = 0; key < end; key += kKeys, stage ^= 1) {
    copy_async_wait<0>();
    __syncthreads();  // the keys are there, and the weights and values before them are read
    copies.keys(c.v, 1, key);
    copy_async_commit();
    scores(0);
    __syncthreads();
    if (key + kKeys < end) {
      copies.keys(c.k, 0, key + kKeys);
      copies.factors(stage ^ 1, key + kKeys);
    }
    copy_async_commit();
    using Keys = KeyFactors<N>;
    const bool all = all_unmasked(key);
    const float* const lse = memory.lse[row0] + kept(lane) % 4 * 2;
    LowRankMix<N> mix;
    AFragment<N> gate;
    DiagonalFragments h(0);  // zeros for this tile only, registers being scarce
#pragma unroll
    for (int mixing = 0; mixing < 2; ++mixing) {
      const TileFactors factors{factor_row(stage) + mixing * next_mixing};
      mix.load(factors, Keys::kDown, Keys::kUp);
      factors.load_a(gate, Keys::kGate);
      const bfloat16* const matrix = memory.matrix[mixing][row0] + matrix_row<N>(kept(lane));
#pragma unroll 1
      for (int r = 0; r < kRowsOfWarp; ++r) {
        bfloat16* const at = tile + r * kScoreRow;
        const bfloat16* const C = matrix + r * (N * kMatrixPitch<N>);
        AFragment<N> a{};
        if (all || !unmasked(row0 + r, key).none()) {
          Accumulator<N> x;
          load_a<N>(a, at);
          if (mixing == 0) {
            probabilities<N>(x, a, mix, h, gate, C, lse + r * N, diagonal);
            if (!all) mask_tile<N>(x, unmasked(row0 + r, key), lane);
          } else {
            unpack<N>(x, a);
            mix.sum(h, a, diagonal);
            compose<N, Of::weights>(x, a, mix, h, gate, C, diagonal);
          }
          pack<N>(a, x);
        }
        store_a<N>(at, a);
      }
      __syncwarp();
    }
    copy_async_wait<1>();
    __syncthreads();  // the weights and the values are there
    const int again = kept(lane);
    const bfloat16* const v_row = k_row + next_keys + (again / 8 % 2 - again / 16) * 8 * kDepth;
    const int v_piece = (again / 16 ^ again % 8) << 3;
    uint32_t a[2][4];
    ldmatrix(a[0], score_rows);
    ldmatrix(a[1], score_rows + 16 * kScoreRow);
#pragma unroll
    for (int n = 0; n < kPieces; n += 2) {
      uint32_t b[4];  // of 8 elements the keys 0-7 and 8-15, and of the next 8
      ldmatrix<true>(b, v_row + (v_piece ^ 8 * n));
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        mma_bf16(y[m][n], a[m], b[0], b[1]);
        mma_bf16(y[m][n + 1], a[m], b[2], b[3]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {  // rows g, g + 8, ...
    const int row = 8 * i + lane / 4;
    if (row >= rows) break;
    bfloat16* const to =
        c.y + int64_t{sample} * c.y_sample + warp * c.y_head + (first + row) * c.y_token + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < kPieces; ++n) {
      if (n < c.d / 8)
        *reinterpret_cast<uint32_t*>(to + 8 * n) = pack_bf16(y[i / 2][n][i % 2 * 2], y[i / 2][n][i % 2 * 2 + 1]);
    }
  }
}

}  // namespace

int64_t one_pass_shared_bytes() { return sizeof(OnePassMemory); }

void one_pass_forward(const OnePass& c, int samples) {
  int64_t tiles = 0;  // of 32 queries and 16 keys
  for (int first = c.first_row; first < c.first_row + c.rows; first += kQueries) {
    const int last = std::min(first + kQueries, c.first_row + c.rows) - 1;
    const int begin = std::max(0, first + c.begin_shift) / kKeys * kKeys, end = std::min(c.keys, last + c.end_shift);
    if (begin < end) tiles += detail::ceil_div(end - begin, kKeys);
  }
  const int64_t tokens = int64_t{samples} * c.rows, keys = int64_t{samples} * c.keys;
  launch(dcmha_one_pass,
         {.grid = dim3(static_cast<unsigned>(detail::ceil_div(c.rows, kQueries)), static_cast<unsigned>(samples)),
          .block = kThreadsOfBlock,
          .shared_bytes = sizeof(OnePassMemory),
          .scores = samples * tiles * kQueries * kKeys * N,
          .bytes = tokens * (4 * N * c.d + 4 * N * N + 4 * N) + keys * (4 * c.key_heads * c.d + 20 * N)},
         c);
}

}  // namespace braid::cuda::attention::tensor_core
