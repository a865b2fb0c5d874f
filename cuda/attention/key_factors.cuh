// Compose for the 16 keys of a warp: their factors as fragments, which stay in registers while query rows stream by,
// and the products of a tile of scores with them.
#pragma once
#include "braid/cuda/attention/stream.cuh"

namespace braid::cuda::attention::tensor_core {

// The factors of one compose for the warp's 16 keys, keys x heads in shared memory that nothing else uses yet: down and
// up of both ranks, and the gate; zeros where one is absent, and behind the last key. From there they come as
// fragments.
template <int N>
class KeyFactors {
  static constexpr int kTile = 16 * kMatrixPitch<N>;

 public:
  static constexpr int kDown = 0, kUp = 2, kGate = 4, kBytes = kWarps * 5 * kTile * static_cast<int>(sizeof(bfloat16));

  // All lanes of a warp together; what the warp has loaded before is gone.
  __device__ __forceinline__ KeyFactors(const Factors& f, const ScoreBlock& c, const BlockCoord<N>& at)
      : row_(dynamic_shared<bfloat16>() + at.warp * (5 * kTile)) {
    __syncwarp();
    copy(kDown, f.down, f.rank > 0, 0, c, at);
    copy(kDown + 1, f.down, f.rank > 1, 1, c, at);
    copy(kUp, f.up, f.rank > 0, 0, c, at);
    copy(kUp + 1, f.up, f.rank > 1, 1, c, at);
    copy(kGate, f.gate, true, 0, c, at);
    copy_async_commit();
    copy_async_wait<0>();
    __syncwarp();
    row_ = kept_shared(row_ + at.lane % 16 * kMatrixPitch<N> + at.lane / 16 * 8);
  }
  __device__ __forceinline__ void load_a(AFragment<N>& w, int tile) const {
#pragma unroll
    for (int k = 0; k < N / 16; ++k) ldmatrix(w[k], row_ + tile * kTile + 16 * k);
  }
  __device__ __forceinline__ void load_b(BFragment<N>& w, int tile) const {
#pragma unroll
    for (int k = 0; k < N / 16; ++k) ldmatrix<true>(w[k], row_ + tile * kTile + 16 * k);
  }

 private:
  __device__ __forceinline__ void copy(int tile, const Factor& f, bool present, int rank, const ScoreBlock& c,
                                       const BlockCoord<N>& at) const {
    constexpr int pieces = N / 8;  // of 16 bytes, of a key
    const int first = at.first_key + at.column;
    const uint32_t keys = f.data && present && at.active() ? static_cast<uint32_t>(c.keys) : 0;
    const bfloat16* const from =
        f.data + (keys > 0 ? (c.first_sample + at.sample) * f.sample + rank * f.rank + first * f.token : 0);
    if (f.aligned || keys == 0) {
#pragma unroll
      for (int i = at.lane; i < 16 * pieces; i += 32) {
        const int key = i / pieces;
        const bool valid = static_cast<uint32_t>(first + key) < keys;
        copy_async<16>(row_ + tile * kTile + key * kMatrixPitch<N> + i % pieces * 8,
                       valid ? from + key * f.token + i % pieces * 8 : nullptr, valid);
      }
      return;
    }
#pragma unroll 1
    for (int i = at.lane; i < 16 * N; i += 32) {
      const int key = i / N;
      row_[tile * kTile + key * kMatrixPitch<N> + i % N] =
          static_cast<uint32_t>(first + key) < keys ? from[key * f.token + i % N] : bfloat16();
    }
  }

  bfloat16* row_;
};

// x += sum_r out_r sum_heads(in_r a): both factors of one direction. Where registers are scarce, `out` is spilled to
// shared memory.
template <int N, bool spilled = false>
class LowRankMix {
 public:
  __device__ __forceinline__ void spill(bfloat16* padding) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int k = 0; k < N / 16; ++k) stmatrix(padding + (r * N + k * 16) * kTilePitch, out_[r][k]);
    }
    spill_ = padding;
  }
  template <class Factors>  // KeyFactors, or what loads fragments like it
  __device__ __forceinline__ void load(const Factors& keys, int in_factor, int out_factor) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      keys.load_a(in_[r], in_factor + r);
      keys.load_b(out_[r], out_factor + r);
    }
  }
  // `in` again from rank `first` on, which the opposite direction has spilled as its `out`.
  template <int first>
  __device__ __forceinline__ void load_in(const bfloat16* padding) {
#pragma unroll
    for (int r = first; r < 2; ++r) load_a<N>(in_[r], padding + r * (N * kTilePitch));
  }
  __device__ __forceinline__ void sum(DiagonalFragments& h, const AFragment<N>& a, uint32_t mask) const {
    sum_heads<N>(h.rank[0], a, in_[0], mask);
    sum_heads<N>(h.rank[1], a, in_[1], mask);
  }
  __device__ __forceinline__ void add(Accumulator<N>& x, const DiagonalFragments& h) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if constexpr (spilled) {
        BFragment<N> out;
        load_b<N>(out, spill_ + r * (N * kTilePitch));
        add_scaled<N>(x, h.rank[r], out);
      } else {
        add_scaled<N>(x, h.rank[r], out_[r]);
      }
    }
  }

 private:
  AFragment<N> in_[2];
  BFragment<N> out_[2];
  const bfloat16* spill_;
};

// x = compose(x), or its transpose, with a = x packed, h = w.sum(a).
// The gate's product is exact for scores, which are exponents.
enum class Of { scores, weights, gradients };
template <int N, Of of, bool spilled>
__device__ __forceinline__ void compose(Accumulator<N>& x, const AFragment<N>& a, const LowRankMix<N, spilled>& w,
                                        const DiagonalFragments& h, const AFragment<N>& gate, const bfloat16* matrix,
                                        uint32_t diagonal) {
  if constexpr (N == 16) w.add(x, h);  // this order of the sums lets the compiler avoid spills
  add_product<N, of == Of::scores>(x, a, gate, diagonal);
  add_mixed<N, of == Of::gradients>(x, a, matrix);
  if constexpr (N != 16) w.add(x, h);
}

// x = exp(compose(a) - lse), the probabilities of scores a where the key is unmasked. lse: as for exponentials.
template <int N, bool spilled>
__device__ __forceinline__ void probabilities(Accumulator<N>& x, const AFragment<N>& a, const LowRankMix<N, spilled>& w,
                                              DiagonalFragments& h, const AFragment<N>& gate, const bfloat16* matrix,
                                              const float* lse, uint32_t diagonal) {
  unpack<N>(x, a);
  w.sum(h, a, diagonal);
  compose<N, Of::scores>(x, a, w, h, gate, matrix, diagonal);
  exponentials<N>(x, lse);
}

}  // namespace braid::cuda::attention::tensor_core
