// Compose on tensor-core fragments, for one warp: one query i, 16 keys j, all N heads (16 or 32).
//
//   out[j,m] = in[j,m] (1 + gate_m(j)) + sum_r up_rm(j) (sum_n down_rn(j) in[j,n]) + sum_n in[j,n] C_nm(i)
//
// The weights of the keys (rank 2) stay in registers; everything that depends on the query alone is one matrix
// C(i) = base + sum_r q_down_r q_up_r^T + diag(q_gate). The identity is `in` itself, exact in f32. The transpose, which
// the derivative needs, is the same with down and up exchanged and C^T.
//
// A tile is 16 keys x N heads, held in two forms, with g = lane / 4 and t = lane % 4:
//   packed, bf16 pairs: a[k][q], q = 0..3: keys g, g+8, g, g+8; heads 16k + 2t, +1 (q < 2) or 16k + 8 + 2t, +1
//   wide, f32:          x[c][q], q = 0..3: key g (q < 2) or g+8; head 8c + 2t + q%2
// Packed is the left operand of mma_bf16 and wide its result: a result, packed, is the next operand, and no value moves
// between lanes.
#pragma once
#include "cuda/kernel.h"
#include "tensor/dtype.h"

namespace braid::cuda::dcmha_fast {

template <int N>
using Packed = uint32_t[N / 16][4];
template <int N>
using Wide = float[N / 8][4];

// Elements from one head's 16 keys to the next in shared memory, and from one row of C to the next: multiples of 16
// bytes that spread 8 consecutive rows over all banks.
constexpr int kTilePitch = 24;
template <int N>
constexpr int kMatrixPitch = N + 8;

// ---- between shared memory and registers ----

// A tile in shared memory is [head][kTilePitch]. Where the row starts that this lane names to ldmatrix and stmatrix:
__device__ __forceinline__ int tile_row(int lane) { return (lane / 16 * 8 + lane % 8) * kTilePitch + lane / 8 % 2 * 8; }

// And in a row-major N x N matrix with rows kMatrixPitch<N> apart:
template <int N>
__device__ __forceinline__ int matrix_row(int lane) {
  return (lane / 16 * 8 + lane % 8) * kMatrixPitch<N> + lane / 8 % 2 * 8;
}

template <int N>
__device__ __forceinline__ void load_tile(Packed<N>& a, const bfloat16* row) {
#pragma unroll
  for (int k = 0; k < N / 16; ++k) ldmatrix<true>(a[k], row + k * 16 * kTilePitch);
}
template <int N>
__device__ __forceinline__ void store_tile(bfloat16* row, const Packed<N>& a) {
#pragma unroll
  for (int k = 0; k < N / 16; ++k) stmatrix<true>(row + k * 16 * kTilePitch, a[k]);
}

template <int N>
__device__ __forceinline__ void unpack(Wide<N>& x, const Packed<N>& a) {
#pragma unroll
  for (int c = 0; c < N / 8; ++c) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t pair = a[c / 2][c % 2 * 2 + half];
      x[c][2 * half] = low_bf16(pair);
      x[c][2 * half + 1] = high_bf16(pair);
    }
  }
}
template <int N>
__device__ __forceinline__ void pack(Packed<N>& a, const Wide<N>& x) {
#pragma unroll
  for (int c = 0; c < N / 8; ++c) {
#pragma unroll
    for (int half = 0; half < 2; ++half) a[c / 2][c % 2 * 2 + half] = pack_bf16(x[c][2 * half], x[c][2 * half + 1]);
  }
}

// ---- compose ----

template <int N>
struct KeyWeights {
  Packed<N> down[2], up[2], gate;

  // Called in a loop: else the compiler unpacks the weights ahead of it and runs out of registers.
  __device__ __forceinline__ void stay_packed() {
#pragma unroll
    for (int k = 0; k < N / 16; ++k) {
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        opaque(gate[k][q]);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          opaque(down[r][k][q]);
          opaque(up[r][k][q]);
        }
      }
    }
  }
};

// sum[0] = sum over heads of weight * a for key g, sum[2] for key g+8: a product with a matrix of ones, all of whose
// columns are equal (sum[1] and sum[3] repeat them; leaving them alone saves registers).
template <int N>
__device__ __forceinline__ void sum_heads(float (&sum)[4], const Packed<N>& a, const Packed<N>& weight) {
  constexpr uint32_t ones = 0x3f803f80u;
  sum[0] = sum[1] = sum[2] = sum[3] = 0;
#pragma unroll
  for (int k = 0; k < N / 16; ++k) {
    uint32_t product[4];
#pragma unroll
    for (int q = 0; q < 4; ++q) product[q] = multiply_bf16x2(a[k][q], weight[k][q]);
    mma_bf16(sum, product, ones, ones);
  }
}
template <int N>
__device__ __forceinline__ void sum_heads(float (&sum)[2][4], const Packed<N>& a, const Packed<N> (&weight)[2]) {
  sum_heads<N>(sum[0], a, weight[0]);
  sum_heads<N>(sum[1], a, weight[1]);
}

// x = x (1 + gate) + sum_r weight_r sum_r + a C, where a is x packed; or C^T.
template <int N, bool transposed>
__device__ __forceinline__ void compose(Wide<N>& x, const Packed<N>& a, const bfloat16* matrix, int lane,
                                        const Packed<N>& gate, const Packed<N> (&weight)[2], const float (&sum)[2][4]) {
#pragma unroll
  for (int c = 0; c < N / 8; ++c) {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const auto of = [&](const Packed<N>& w) {
        const uint32_t pair = w[c / 2][c % 2 * 2 + q / 2];
        return q % 2 ? high_bf16(pair) : low_bf16(pair);
      };
      x[c][q] = fmaf(x[c][q], of(gate), x[c][q]);
#pragma unroll
      for (int r = 0; r < 2; ++r) x[c][q] = fmaf(of(weight[r]), sum[r][q & 2], x[c][q]);
    }
  }
  // The same four tiles of 8 x 8 of C, read by columns or by rows, are the right operands for C and for C^T.
  const bfloat16* const row = matrix + matrix_row<N>(lane);
#pragma unroll
  for (int out = 0; out < N / 16; ++out) {
#pragma unroll
    for (int k = 0; k < N / 16; ++k) {
      uint32_t b[4];
      ldmatrix<!transposed>(b, row + (transposed ? out : k) * 16 * kMatrixPitch<N> + (transposed ? k : out) * 16);
      mma_bf16(x[2 * out], a[k], b[0], b[transposed ? 1 : 2]);
      mma_bf16(x[2 * out + 1], a[k], b[transposed ? 2 : 1], b[3]);
    }
  }
}

// ---- softmax ----

constexpr float kLog2e = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

// p = exp(x - lse_m)
template <int N>
__device__ __forceinline__ void exponentials(Wide<N>& x, const float* lse, int lane) {
#pragma unroll
  for (int c = 0; c < N / 8; ++c) {
    const float2 l = *reinterpret_cast<const float2*>(lse + c * 8 + lane % 4 * 2);
    const float low = -kLog2e * l.x, high = -kLog2e * l.y;
#pragma unroll
    for (int q = 0; q < 4; ++q) x[c][q] = exp2_approx(fmaf(x[c][q], kLog2e, q % 2 ? high : low));
  }
}

// The keys [begin, end) of a tile, 0 <= begin and end <= 16, that a query sees.
struct Seen {
  int begin, end;
  __device__ __forceinline__ bool none() const { return begin >= end; }
  __device__ __forceinline__ bool all() const { return begin == 0 && end == 16; }
};

// x = value where the key is not seen.
template <int N>
__device__ __forceinline__ void hide(Wide<N>& x, Seen seen, int lane, float value) {
  if (seen.all()) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int key = lane / 4 + 8 * half;
    if (key < seen.begin || key >= seen.end) {
#pragma unroll
      for (int c = 0; c < N / 8; ++c) x[c][2 * half] = x[c][2 * half + 1] = value;
    }
  }
}

// ---- sums over the 16 keys of a tile ----

// v[2c + o] is this lane's part of the sum for head 8c + 2t + o. Each lane gets the sum for one head:
// head_of_sum(lane).
template <int N>
__device__ __forceinline__ float sum_keys(float (&v)[N / 4], int lane) {
#pragma unroll
  for (int distance = 16, n = N / 4; distance >= 4; distance /= 2) {
    const bool upper = lane & distance;
    if (n > 1) {  // halve the heads: keep one half's parts, give the other's away
      n /= 2;
#pragma unroll
      for (int i = 0; i < n; ++i) {
        const float keep = upper ? v[n + i] : v[i], give = upper ? v[i] : v[n + i];
        v[i] = keep + __shfl_xor_sync(~0u, give, distance);
      }
    } else {
      v[0] += __shfl_xor_sync(~0u, v[0], distance);
    }
  }
  return v[0];
}
// With 16 heads two lanes have the same one; the first of them stores it.
template <int N>
__device__ __forceinline__ bool stores_sum(int lane) {
  return N == 32 || lane / 4 % 2 == 0;
}
template <int N>
__device__ __forceinline__ int head_of_sum(int lane) {
  const int i = N == 16 ? lane / 8 : lane / 4;
  return i / 2 * 8 + lane % 4 * 2 + i % 2;
}

}  // namespace braid::cuda::dcmha_fast
