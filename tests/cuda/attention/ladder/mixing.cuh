// Compose on tensor cores, as rungs 3 and 3b use it: a warp mixes 16 keys of one query, N = 16 heads, with the
// fragments of tile.cuh.
//
// Mixing as products: all that depends on the query alone is one matrix C(i) = base + sum_r q_down_r q_up_r^T +
// diag(q_gate), and the tile (16 keys x 16 heads) times C is 2 instructions. A key's factors need the sum over heads
// h_r(j) = sum_n k_down_rn(j) a[j,n]: the diagonal of the product of the tile and down_r^T. As a diagonal matrix it is
// the left operand of the product that adds k_up_r h_r.
#pragma once
#include "braid/cuda/device/kernel.h"
// (kernel.h first: the header below uses it)
#include "braid/cuda/attention/tile.cuh"
#include "braid/tensor/kernels/attention.h"

namespace braid::ladder::on_tensor_cores {

using namespace cuda::attention::tensor_core;

constexpr int N = 16, kKeys = 16;

// One stage of Compose, G = 1: shapes as in formula.cuh, ranks of 1 or 2.
struct Mixing {
  const bfloat16 *base, *q_down, *q_up, *q_gate, *k_down, *k_up, *k_gate;
  int q_rank, k_rank;
  explicit Mixing(const HeadMixing& c)
      : base(c.base.data<bfloat16>()),
        q_down(c.q_down.data<bfloat16>()),
        q_up(c.q_up.data<bfloat16>()),
        q_gate(c.q_gate.data<bfloat16>()),
        k_down(c.k_down.data<bfloat16>()),
        k_up(c.k_up.data<bfloat16>()),
        k_gate(c.k_gate.data<bfloat16>()),
        q_rank(static_cast<int>(c.q_down.dim(3))),
        k_rank(static_cast<int>(c.k_down.dim(3))) {}
};

// C[n,m] of a query, b T + i: head read, head written.
__device__ inline bfloat16 matrix_element(const Mixing& w, int query, int n, int m) {
  float value = static_cast<float>(w.base[n * N + m]);
  for (int r = 0; r < w.q_rank; ++r) {
    const int factor = (query * w.q_rank + r) * N;
    value += static_cast<float>(w.q_down[factor + n]) * static_cast<float>(w.q_up[factor + m]);
  }
  if (n == m) value += static_cast<float>(w.q_gate[query * N + n]);
  return bfloat16(value);
}

// The factors of 16 keys in shared memory. A tile is [head][kTilePitch].
struct KeyTiles {
  bfloat16 down[2][N * kTilePitch], up[2][N * kTilePitch], gate[N * kTilePitch];
};

// One tile of a factor, (keys, N) with `step` elements from key to key; zeros beyond `keys` and where it is absent.
__device__ inline void copy_factor(const bfloat16* from, int step, int keys, bfloat16* tile) {
  for (int at = static_cast<int>(threadIdx.x); at < kKeys * N; at += static_cast<int>(blockDim.x)) {
    const int key = at / N, head = at % N;
    tile[head * kTilePitch + key] = from != nullptr && key < keys ? from[key * step + head] : bfloat16(0.0f);
  }
}

// All of them, by all threads of the block: of the keys from `first` = b S + j on, of which `keys` exist.
__device__ inline void copy_key_tiles(const Mixing& w, int first, int keys, KeyTiles& to) {
  for (int r = 0; r < 2; ++r) {
    const bool present = r < w.k_rank;
    const int factor = (first * w.k_rank + r) * N;
    copy_factor(present ? w.k_down + factor : nullptr, w.k_rank * N, keys, to.down[r]);
    copy_factor(present ? w.k_up + factor : nullptr, w.k_rank * N, keys, to.up[r]);
  }
  copy_factor(w.k_gate + first * N, N, keys, to.gate);
}

// x = Compose(a), with the matrix C of the query in rows of kMatrixPitch<N>. From shared memory to fragments each lane
// passes the address of one row of 8 elements.
__device__ inline void compose(Accumulator<N>& x, const AFragment<N>& a, const KeyTiles& factors,
                               const bfloat16* matrix, DiagonalFragments& h) {
  const int lane = static_cast<int>(threadIdx.x) % 32, row = tile_row(lane);
  const uint32_t diagonal = diagonal_mask(lane);
  AFragment<N> gate;
  load_a<N>(gate, factors.gate + row);
  unpack<N>(x, a);  // the identity in Compose, exact in f32
  for (int r = 0; r < 2; ++r) {
    AFragment<N> down;
    BFragment<N> up;
    load_a<N>(down, factors.down[r] + row);
    load_b<N>(up, factors.up[r] + row);
    sum_heads<N>(h.rank[r], a, down, diagonal);  // h_r, as a diagonal matrix
    add_scaled<N>(x, h.rank[r], up);
  }
  add_product<N, true>(x, a, gate, diagonal);
  add_mixed<N, false>(x, a, matrix + matrix_row<N>(lane));  // x += a C
}

}  // namespace braid::ladder::on_tensor_cores
