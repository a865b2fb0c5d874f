// DCMHA backward between the batched products: dcmha_backward_post, through post-compose, and dcmha_backward_pre,
// through softmax and pre-compose.
//
// Both recompute the probabilities P from the scores. With out = compose(in) as in tile.cuh,
// g_r = sum_m up_rm d_out_m and h_r = sum_n down_rn in_n,
//   d_in = d_out (1 + gate) + sum_r down_r g_r + d_out C(i)^T
//   d_down_r += g_r in      d_up_r += h_r d_out      d_gate += in d_out        (of a key: sums over queries)
// and the gradients of the query's weights all follow from sum over keys of in_n d_out_m, a product of two tiles.
// Softmax: d(composed score) = P (dP - delta), delta = sum over keys of P dP. That sum is made of P as rounded to bf16,
// and divided by the sum of these: else d(composed score) of a row would not sum to 0.
#include "braid/cuda/device/kernel.h"
// (kernel.h first: the headers below use it)
#include "braid/cuda/attention/key_factors.cuh"

namespace braid::cuda::attention::tensor_core {
namespace {

template <int N>
struct KeySums {
  Accumulator<N> down[2], up[2], gate;

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int c = 0; c < N / 8; ++c) {
#pragma unroll
      for (int q = 0; q < 4; ++q) down[0][c][q] = down[1][c][q] = up[0][c][q] = up[1][c][q] = gate[c][q] = 0;
    }
  }
  // `row`: where this lane's row of d_out, or of `in`, starts in shared memory. The gate is added apart.
  __device__ __forceinline__ void add_up(const DiagonalFragments& h, const bfloat16* row) { add(up, h, row); }
  __device__ __forceinline__ void add_down(const DiagonalFragments& g, const bfloat16* row) { add(down, g, row); }
  static __device__ __forceinline__ void add(Accumulator<N> (&sum)[2], const DiagonalFragments& d,
                                             const bfloat16* row) {
    BFragment<N> fragment;
    load_b<N>(fragment, row);
    add_scaled<N>(sum[0], d.rank[0], fragment);
    add_scaled<N>(sum[1], d.rank[1], fragment);
  }
  // d_keys (segments, samples, panels, pitch, 5, N) = the warp's sums.
  __device__ __forceinline__ void write(float* d_keys, const ScoreBlock& c, const BlockCoord<N>& at) const {
    if (d_keys == nullptr || !at.active()) return;
    const size_t panel = blockIdx.y * gridDim.z + blockIdx.z;
    d_keys += (panel * c.pitch + at.column + at.lane / 4) * (5 * N) + at.lane % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int n = 0; n < N / 8; ++n) {
        const Accumulator<N>* const parts[5] = {&down[0], &down[1], &up[0], &up[1], &gate};
#pragma unroll
        for (int k = 0; k < 5; ++k) {
          const float(&part)[4] = (*parts[k])[n];
          *reinterpret_cast<float2*>(d_keys + half * (40 * N) + k * N + 8 * n) = {part[2 * half], part[2 * half + 1]};
        }
      }
    }
  }
};

// Sums over the keys of all warps, for the rows of a group. Each row has 8 / kRows warps, of which each makes a part of
//   outer_sum (samples, rows, key_blocks, N, N):     sum of x_n y_m, x and y being the first two tensors of the group
//   delta (samples, rows, key_blocks, N) pairs: sum of x_n z_n, the diagonal of such a product, and sum of x_n
template <int N, class G>
class RowProducts {
  static constexpr int kWarpsPerRow = kWarps / kRows<N>;
  static constexpr int kColumns = N * N / 16 / kWarpsPerRow;  // of 16 rows of outer_sum: 8 (N = 16) or 16 (N = 32)
  static constexpr int kPart = G::kTensor / kWarps, kStep = sizeof(G) / sizeof(bfloat16);

 public:
  __device__ __forceinline__ RowProducts(const G (&stage)[2], bfloat16* outer_sum, const ScoreBlock& c,
                                         const BlockCoord<N>& at)
      : outer_sum_(outer_sum),
        rows_(at.rows),
        row_(at.warp / kWarpsPerRow),
        step_(static_cast<int>(gridDim.x) * N),
        diagonal_(at.diagonal != 0) {
    const int share = at.warp % kWarpsPerRow, lane = at.lane;
    const int n0 = share * 8 / 16 * 16, m0 = share % 2 * kColumns;
    left_ = kept_shared(stage[0].tile[0][0].row[row_] + n0 * kTilePitch + left_row(lane));
    right_ = kept_shared(stage[0].tile[1][0].row[row_] + m0 * kTilePitch + tile_row(lane));
    first_ = (at.first_row(c, c.rows) * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x)) * N;
    to_ = (first_ + n0 + lane / 4) * N + m0 + lane % 4 * 2;
    head_ = 8 * share + lane / 4;
    upper_ = share % 2 != 0;
  }

  __device__ __forceinline__ void multiply(int stage, int row0) const {
    const int row = row0 + row_;
    if (row >= rows_) return;
    float sum[kColumns / 8][4] = {};
#pragma unroll
    for (int w = 0; w < kWarps; ++w) add(sum, left(stage, w), stage, w);
    store(sum, row);
  }
  // `other`: row_of z.
  __device__ __forceinline__ void multiply(int stage, int row0, const bfloat16* other, float2* delta) const {
    const int row = row0 + row_;
    if (row >= rows_) return;
    constexpr uint32_t ones = 0x3f803f80u;
    float sum[kColumns / 8][4] = {}, diagonal[4] = {}, total[4] = {};
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const Left a = left(stage, w);
      add(sum, a, stage, w);
      uint32_t b[2];
      ldmatrix(b, other + w * kPart);
      mma_bf16(diagonal, a.tiles, b[0], b[1]);
      mma_bf16(total, a.tiles, ones, ones);
    }
    store(sum, row);
    const float low = upper_ ? diagonal[2] : diagonal[0], high = upper_ ? diagonal[3] : diagonal[1];
    if (diagonal_) delta[first_ + row * step_ + head_] = {head_ % 2 == 0 ? low : high, upper_ ? total[2] : total[0]};
  }
  // Where this lane's row of 8 heads of z starts, z being laid out like the rows of a tensor of the group.
  __device__ __forceinline__ const bfloat16* row_of(const typename G::Part (&z)[kWarps],
                                                    const BlockCoord<N>& at) const {
    return z[0].row[row_] + at.warp % kWarpsPerRow * 8 * kTilePitch + tile_row(at.lane);
  }

 private:
  struct Left {
    uint32_t tiles[4];  // heads 0-7, 8-15 of keys 0-7, then of keys 8-15
  };
  static __device__ __forceinline__ int left_row(int lane) {
    return (lane / 8 % 2 * 8 + lane % 8) * kTilePitch + lane / 16 * 8;
  }
  __device__ __forceinline__ Left left(int stage, int w) const {
    Left a;
    ldmatrix(a.tiles, left_ + stage * kStep + w * kPart);
    return a;
  }
  __device__ __forceinline__ void add(float (&sum)[kColumns / 8][4], const Left& a, int stage, int w) const {
    uint32_t b[kColumns / 4];  // heads 0-7, of keys 0-7 and of keys 8-15, then heads 8-15
    ldmatrix(b, right_ + stage * kStep + w * kPart);
#pragma unroll
    for (int k = 0; k < kColumns / 8; ++k) mma_bf16(sum[k], a.tiles, b[2 * k], b[2 * k + 1]);
  }
  __device__ __forceinline__ void store(const float (&sum)[kColumns / 8][4], int row) const {
    bfloat16* const to = outer_sum_ + kept(to_ + row * step_ * N);
#pragma unroll
    for (int k = 0; k < kColumns / 8; ++k) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<uint32_t*>(to + half * 8 * N + k * 8) = pack_bf16(sum[k][2 * half], sum[k][2 * half + 1]);
    }
  }

  bfloat16* const outer_sum_;
  const int rows_, row_, step_;
  const bool diagonal_;
  const bfloat16 *left_, *right_;
  int first_, to_, head_;
  bool upper_;
};

template <int N>
struct PostMemory {
  using Input = PipelineStage<N, 2, 2, 1>;
  Input group[2];                          // scores, later probabilities, and d(weights)
  typename Input::Part result[2][kWarps];  // of one group: weights, d(probabilities)
};

template <int N>
__global__ void __launch_bounds__(kThreads, 1)
    dcmha_backward_post(ScoreBlock c, Factors key_pre, Factors key_post, const bfloat16* pre, const bfloat16* post,
                        const float* lse, const bfloat16* scores, bfloat16* d_weights, bfloat16* weights, float2* delta,
                        bfloat16* outer_sum, float* d_keys) {
  PostMemory<N>& memory = *dynamic_shared<PostMemory<N>>();
  static_assert(KeyFactors<N>::kBytes <= sizeof(memory.group), "factors come through the stages");
  const BlockCoord<N> at(c);
  if (!at.in_panel()) return;
  DiagonalFragments h;
  zero_masked_rows<N>(weights, c, at);
  const StageReader<N, 2, 2, 1> in(memory.group, at);
  LowRankMix<N> mix_pre;
  LowRankMix<N, N == 32> mix_post, mix_back;
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
    mix_back.load(keys, Keys::kUp, Keys::kDown);
    keys.load_a(gate_post, Keys::kGate);
  }
  __syncthreads();  // the factors' memory is free
  if constexpr (N == 32) {
    mix_post.spill(in.padding(0));
    mix_back.spill(in.padding(1));
  }
  KeySums<N> sums;
  sums.clear();
  bfloat16* const result = kept_shared(memory.result[0][at.warp].row[0] + tile_row(at.lane));
  constexpr int second = PostMemory<N>::Input::kTensor;  // from weights to d(probabilities)
  const GroupWriter<N, typename PostMemory<N>::Input::Part> out(memory.result[0], c, at);
  const RowProducts<N, PipelineStage<N, 2, 2, 1>> products(memory.group, outer_sum, c, at);
  const bfloat16* const d_probabilities = kept_shared(products.row_of(memory.result[1], at));

  stream<N>(memory.group, c, at, {{scores, d_weights}, {pre, post}, {lse}}, [&](int row0, int rows, int stage) {
    const bool all_unmasked = at.all_unmasked(row0, rows);
#pragma unroll 1
    for (int r = 0; r < rows; ++r) {
      bfloat16* const tile = in.tile(stage, 0, r);
      if (!all_unmasked && at.unmasked(row0 + r).none()) {
        const AFragment<N> zero{};
        store_a<N>(tile, zero);
        store_a<N>(result + in.distance(0, r), zero);
        store_a<N>(result + in.distance(0, r) + second, zero);
        continue;
      }
      AFragment<N> a, d;
      Accumulator<N> x, dx;
      load_a<N>(a, tile);
      probabilities<N>(x, a, mix_pre, h, gate_pre, in.matrix(stage, 0, r), in.statistic(stage, 0, r), at.diagonal);
      if (!all_unmasked) mask_tile<N>(x, at.unmasked(row0 + r), at.lane);
      pack<N>(a, x);
      store_a<N>(tile, a);
      load_a<N>(d, in.tile(stage, 1, r));
      unpack<N>(dx, d);
#pragma unroll
      for (int n = 0; n < N / 8; ++n) {
#pragma unroll
        for (int q = 0; q < 4; ++q) sums.gate[n][q] = fmaf(x[n][q], dx[n][q], sums.gate[n][q]);
      }
      mix_post.sum(h, a, at.diagonal);
      sums.add_up(h, in.tile(stage, 1, r));
      compose<N, Of::weights>(x, a, mix_post, h, gate_post, in.matrix(stage, 1, r), at.diagonal);
      pack<N>(a, x);
      store_a<N>(result + in.distance(0, r), a);
      __syncwarp();  // the probabilities are there
      mix_back.sum(h, d, at.diagonal);
      sums.add_down(h, tile);
      compose<N, Of::gradients>(dx, d, mix_back, h, gate_post, in.transposed(stage, 1, r), at.diagonal);
      pack<N>(d, dx);
      store_a<N>(result + in.distance(0, r) + second, d);
    }
    __syncthreads();
    out.write(weights, 0, row0, rows);
    out.template write<true>(d_weights, second, row0, rows);
    products.multiply(stage, row0, d_probabilities, delta);  // rounded, as dcmha_backward_pre reads them
  });
  sums.write(d_keys, c, at);
}

template <int N>
struct PreMemory {
  PipelineStage<N, 2, 1, 2> group[2];       // scores and d(probabilities), later d(composed scores)
  bfloat16 result[kWarps][N * kTilePitch];  // of a row: d(scores)
};

template <int N>
__global__ void __launch_bounds__(kThreads, N == 16 ? 2 : 1)
    dcmha_backward_pre(ScoreBlock c, Factors key_pre, const bfloat16* pre, const float* lse, const float* delta,
                       const bfloat16* scores, bfloat16* d_scores, bfloat16* outer_sum, float* d_keys) {
  PreMemory<N>& memory = *dynamic_shared<PreMemory<N>>();
  static_assert(KeyFactors<N>::kBytes <= sizeof(memory.group), "factors come through the stages");
  const BlockCoord<N> at(c);
  if (!at.in_panel()) return;
  DiagonalFragments h;
  zero_masked_rows<N>(d_scores, c, at);
  const StageReader<N, 2, 1, 2> in(memory.group, at);
  LowRankMix<N, N == 16> mix, mix_back;
  AFragment<N> gate;
  using Keys = KeyFactors<N>;
  {
    const Keys keys(key_pre, c, at);
    mix.load(keys, Keys::kDown, Keys::kUp);
    mix_back.load(keys, Keys::kUp, Keys::kDown);
    keys.load_a(gate, Keys::kGate);
  }
  __syncthreads();  // the factors' memory is free
  if constexpr (N == 16) {
    mix.spill(in.padding(0));
    mix_back.spill(in.padding(1));
  }
  KeySums<N> sums;
  sums.clear();
  bfloat16* const result = kept_shared(memory.result[at.warp] + tile_row(at.lane));
  const TileWriter<N> out(memory.result[at.warp], c, at);
  const RowProducts<N, PipelineStage<N, 2, 1, 2>> products(memory.group, outer_sum, c, at);

  stream<N>(memory.group, c, at, {{scores, d_scores}, {pre}, {lse, delta}}, [&](int row0, int rows, int stage) {
    const bool all_unmasked = at.all_unmasked(row0, rows);
#pragma unroll 1
    for (int r = 0; r < rows; ++r) {
      const bfloat16* const tile = in.tile(stage, 0, r);
      bfloat16* const d_tile = in.tile(stage, 1, r);
      AFragment<N> d{};
      if (!all_unmasked && at.unmasked(row0 + r).none()) {
        store_a<N>(d_tile, d);
      } else {
        AFragment<N> a;
        Accumulator<N> x, dx;
        load_a<N>(a, tile);
        if constexpr (N == 16) mix.template load_in<1>(in.padding(1));  // registers are scarce here
        probabilities<N>(x, a, mix, h, gate, in.matrix(stage, 0, r), in.statistic(stage, 0, r), at.diagonal);
        if (!all_unmasked) mask_tile<N>(x, at.unmasked(row0 + r), at.lane);
        load_a<N>(d, d_tile);
        unpack<N>(dx, d);
#pragma unroll
        for (int n = 0; n < N / 8; ++n) {
          const float2 of_row = *reinterpret_cast<const float2*>(in.statistic(stage, 1, r) + n * 8);
#pragma unroll
          for (int q = 0; q < 4; ++q) dx[n][q] = x[n][q] * (dx[n][q] - (q % 2 ? of_row.y : of_row.x));
        }
        pack<N>(d, dx);
        store_a<N>(d_tile, d);
        __syncwarp();  // d(composed scores) are there
        sums.add_up(h, d_tile);
        add_product<N>(sums.gate, a, d, at.diagonal);
        if constexpr (N == 16) mix_back.template load_in<0>(in.padding(0));
        mix_back.sum(h, d, at.diagonal);
        sums.add_down(h, tile);
        compose<N, Of::gradients>(dx, d, mix_back, h, gate, in.transposed(stage, 0, r), at.diagonal);
        pack<N>(d, dx);
      }
      store_a<N>(result, d);
      __syncwarp();
      out.write(d_scores, row0 + r);
      __syncwarp();
    }
    __syncthreads();
    products.multiply(stage, row0);
  });
  sums.write(d_keys, c, at);
}

// Bytes of tensors of scores, of which `pieces` are read or written as far as they are unmasked, and one is written
// whole; of the partial sums for queries and keys, and of n matrices and n values of each head for every row.
template <int N>
int64_t bytes_of(const ScoreBlock& c, int pieces, int matrices, int values, bool pairs, bool keys) {
  const int64_t unmasked = unmasked_scores_of(c), all = scores_of(c), rows = int64_t{c.samples} * c.rows;
  return 2 * (pieces * copied_scores_of(c) + all) + unmasked / kBlockKeys * (2 * N + (pairs ? 8 : 0)) +
         rows * (2 * N * N * matrices + 4 * N * values) + (keys ? all / c.panel_rows * c.segments * 20 : 0);
}

template <int N>
void run_post(const ScoreBlock& c, const Factors& key_pre, const Factors& key_post, const bfloat16* pre,
              const bfloat16* post, const float* lse, const bfloat16* scores, bfloat16* d_weights, bfloat16* weights,
              float2* delta, bfloat16* outer_sum, float* d_keys) {
  launch(dcmha_backward_post<N>,
         {.grid = grid_of(c),
          .block = kThreads,
          .shared_bytes = sizeof(PostMemory<N>),
          .scores = unmasked_scores_of(c),
          .bytes = bytes_of<N>(c, 3, 2, 1, true, d_keys)},
         c, key_pre, key_post, pre, post, lse, scores, d_weights, weights, delta, outer_sum, d_keys);
}
template <int N>
void run_pre(const ScoreBlock& c, const Factors& key_pre, const bfloat16* pre, const float* lse, const float* delta,
             const bfloat16* scores, bfloat16* d_scores, bfloat16* outer_sum, float* d_keys) {
  launch(dcmha_backward_pre<N>,
         {.grid = grid_of(c),
          .block = kThreads,
          .shared_bytes = sizeof(PreMemory<N>),
          .scores = unmasked_scores_of(c),
          .bytes = bytes_of<N>(c, 2, 1, 2, false, d_keys)},
         c, key_pre, pre, lse, delta, scores, d_scores, outer_sum, d_keys);
}

}  // namespace

void backward_post(const ScoreBlock& c, const Factors& key_pre, const Factors& key_post, const bfloat16* pre,
                   const bfloat16* post, const float* lse, const bfloat16* scores, bfloat16* d_weights,
                   bfloat16* weights, float* delta, bfloat16* outer_sum, float* d_keys) {
  (c.heads == 16 ? run_post<16> : run_post<32>)(c, key_pre, key_post, pre, post, lse_of_block(c, lse), scores,
                                                d_weights, weights, reinterpret_cast<float2*>(delta), outer_sum,
                                                d_keys);
}

int64_t shared_bytes(int heads) { return heads == 16 ? sizeof(PostMemory<16>) : sizeof(PostMemory<32>); }

void backward_pre(const ScoreBlock& c, const Factors& key_pre, const bfloat16* pre, const float* lse,
                  const float* delta, const bfloat16* scores, bfloat16* d_probabilities, bfloat16* outer_sum,
                  float* d_keys) {
  (c.heads == 16 ? run_pre<16> : run_pre<32>)(c, key_pre, pre, lse_of_block(c, lse), delta, scores, d_probabilities,
                                              outer_sum, d_keys);
}

}  // namespace braid::cuda::attention::tensor_core
