// Compose on transposed tiles, heads x keys: for the log-sums of rows.
#pragma once
#include "braid/cuda/attention/key_factors.cuh"

namespace braid::cuda::attention::tensor_core {

// A tile here is the right operand and the result of the products that mix, so that a lane has several keys of one head
// and adds most of each sum by itself. Both ranks of a key's factors share one product then. For keys 8h ... 8h+7, h =
// 0, 1:
//   in:  b[k][2h + q]: key 8h + g; heads 16k + 8q + 2t, +1
//   out: x[h][m][q]:   heads 16m + g (q < 2) or 16m + 8 + g; key 8h + 2t + q%2

template <int N>
struct ColumnWeights {
  uint32_t down[2][N / 16][4];  // rows (rank, key of 8), columns heads
  uint32_t up[2][N / 16][4];    // rows heads, columns (rank, key of 8)
  BFragment<N> gate;            // like `in`

  template <class Factors>  // KeyFactors, or what loads fragments like it
  __device__ __forceinline__ explicit ColumnWeights(const Factors& keys) {
    AFragment<N> gates;
    keys.load_a(gates, KeyFactors<N>::kGate);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      AFragment<N> downs;
      BFragment<N> ups;
      keys.load_a(downs, KeyFactors<N>::kDown + r);
      keys.load_b(ups, KeyFactors<N>::kUp + r);
#pragma unroll
      for (int k = 0; k < N / 16; ++k) {
#pragma unroll
        for (int q = 0; q < 4; ++q) {  // keys 8 (q % 2), heads 16 k + 8 (q / 2)
          down[q % 2][k][q / 2 * 2 + r] = downs[k][q];
          up[q % 2][k][2 * r + q / 2] = ups[k][q];
          if (r == 0) gate[k][q % 2 * 2 + q / 2] = gates[k][q];
        }
      }
    }
  }
};

// x = compose(scores) for one query; `scores` and `matrix`: the rows whose addresses this lane passes to ldmatrix.
template <int N>
__device__ __forceinline__ void compose_columns(float (&x)[2][N / 16][4], const bfloat16* scores,
                                                const bfloat16* matrix, const ColumnWeights<N>& w, uint32_t mask,
                                                const uint32_t (&identity)[4]) {
  BFragment<N> b;
  float h[2][4] = {};
#pragma unroll
  for (int k = 0; k < N / 16; ++k) {
    ldmatrix<true>(b[k], scores + k * 16 * kTilePitch);
#pragma unroll
    for (int half = 0; half < 2; ++half) mma_bf16(h[half], w.down[half][k], b[k][2 * half], b[k][2 * half + 1]);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint32_t h0 = pack_bf16(h[half][0], h[half][1]) & mask, h1 = pack_bf16(h[half][2], h[half][3]) & mask;
#pragma unroll
    for (int m = 0; m < N / 16; ++m) {
      x[half][m][0] = x[half][m][1] = x[half][m][2] = x[half][m][3] = 0;
      const uint32_t b0 = b[m][2 * half], b1 = b[m][2 * half + 1];
      mma_bf16(x[half][m], identity, b0, b1);
      const uint32_t gate0 = w.gate[m][2 * half], gate1 = w.gate[m][2 * half + 1];
      const uint32_t f0 = multiply_bf16x2(b0, gate0), f1 = multiply_bf16x2(b1, gate1);
      mma_bf16(x[half][m], identity, f0, f1);
      mma_bf16(x[half][m], identity, fma_bf16x2(b0, gate0, negative_bf16x2(f0)),
               fma_bf16x2(b1, gate1, negative_bf16x2(f1)));  // and what was rounded off
      mma_bf16(x[half][m], w.up[half][m], h0, h1);
    }
  }
#pragma unroll
  for (int m = 0; m < N / 16; ++m) {
#pragma unroll
    for (int k = 0; k < N / 16; ++k) {
      uint32_t a[4];  // of C^T
      ldmatrix<true>(a, matrix + k * 16 * kMatrixPitch<N> + m * 16);
#pragma unroll
      for (int half = 0; half < 2; ++half) mma_bf16(x[half][m], a, b[k][2 * half], b[k][2 * half + 1]);
    }
  }
}

}  // namespace braid::cuda::attention::tensor_core
