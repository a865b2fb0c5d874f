// Compose on tensor-core fragments, for one warp: one query i, 16 keys j, all N heads (16 or 32).
//
//   out[j,m] = in[j,m] (1 + gate_m(j)) + sum_r up_rm(j) (sum_n down_rn(j) in[j,n]) + sum_n in[j,n] C_nm(i)
//
// Everything that depends on the query alone is one matrix C(i) = base + sum_r q_down_r q_up_r^T + diag(q_gate). The
// identity is `in` itself, exact in f32; all other terms are products on tensor cores. The two of the keys' factors:
//   h_r(j) = sum_n down_rn(j) in[j,n]   is the diagonal of  in down_r^T,  16 keys x 16 keys
//   up_rm(j) h_r(j)                     is  diag(h_r) up_r
// The transpose, which the derivative needs, is the same with down and up exchanged and C^T.
//
// A score tile is 16 keys x N heads. The registers of a warp hold it in three layouts, with g = lane / 4, t = lane % 4:
//   AFragment, bf16 pairs of heads: a[k][q], q = 0..3: keys g, g+8, g, g+8; heads 16k + 2t, +1 (q < 2), 16k + 8 + 2t,
//   +1 BFragment, bf16 pairs of keys:  b[k][q], q = 0..3: heads 16k + g (q < 2), 16k + 8 + g; keys 2t, +1 or 8 + 2t, +1
//   Accumulator, f32:               x[c][q], q = 0..3: key g (q < 2) or g+8; head 8c + 2t + q%2
// An AFragment is the left operand of mma_bf16 and an Accumulator its result: a result, packed, is the next left
// operand, and no value moves between lanes. A BFragment is the right operand of products that sum over keys.
#pragma once
#include "braid/cuda/device/kernel.h"
#include "braid/tensor/dtype.h"

namespace braid::cuda::attention::tensor_core {

template <int N>
struct AFragment {
  uint32_t pairs[N / 16][4];
  __device__ __forceinline__ uint32_t (&operator[](int k))[4] { return pairs[k]; }
  __device__ __forceinline__ const uint32_t (&operator[](int k) const)[4] { return pairs[k]; }
};
template <int N>
struct BFragment {
  uint32_t pairs[N / 16][4];
  __device__ __forceinline__ uint32_t (&operator[](int k))[4] { return pairs[k]; }
  __device__ __forceinline__ const uint32_t (&operator[](int k) const)[4] { return pairs[k]; }
};
template <int N>
using Accumulator = float[N / 8][4];

// Elements from one head's 16 keys to the next in shared memory, and from one row of C to the next: multiples of 16
// bytes that spread 8 consecutive rows over all banks.
constexpr int kTilePitch = 24;
template <int N>
constexpr int kMatrixPitch = N + 8;

// ---- between shared memory and registers ----

// A tile in shared memory is [head][kTilePitch]. The start of the row whose address this lane passes to ldmatrix and
// stmatrix:
__device__ __forceinline__ int tile_row(int lane) { return (lane / 16 * 8 + lane % 8) * kTilePitch + lane / 8 % 2 * 8; }

// The same in a row-major N x N matrix C with rows kMatrixPitch<N> apart, of which ldmatrix loads 16 x 16 at once: the
// first two and the last two of the loaded 8 x 8 tiles are right operands. For a C^T, and for a C.
template <int N>
__device__ __forceinline__ int transposed_row(int lane) {
  return (lane / 16 * 8 + lane % 8) * kMatrixPitch<N> + lane / 8 % 2 * 8;
}
template <int N>
__device__ __forceinline__ int matrix_row(int lane) {
  return (lane / 8 % 2 * 8 + lane % 8) * kMatrixPitch<N> + lane / 16 * 8;
}

template <int N>
__device__ __forceinline__ void load_a(AFragment<N>& a, const bfloat16* row) {
#pragma unroll
  for (int k = 0; k < N / 16; ++k) ldmatrix<true>(a[k], row + k * 16 * kTilePitch);
}
template <int N>
__device__ __forceinline__ void load_b(BFragment<N>& b, const bfloat16* row) {
#pragma unroll
  for (int k = 0; k < N / 16; ++k) ldmatrix(b[k], row + k * 16 * kTilePitch);
}
template <int N>
__device__ __forceinline__ void store_a(bfloat16* row, const AFragment<N>& a) {
#pragma unroll
  for (int k = 0; k < N / 16; ++k) stmatrix<true>(row + k * 16 * kTilePitch, a[k]);
}

template <int N>
__device__ __forceinline__ void unpack(Accumulator<N>& x, const AFragment<N>& a) {
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
__device__ __forceinline__ void pack(AFragment<N>& a, const Accumulator<N>& x) {
#pragma unroll
  for (int c = 0; c < N / 8; ++c) {
#pragma unroll
    for (int half = 0; half < 2; ++half) a[c / 2][c % 2 * 2 + half] = pack_bf16(x[c][2 * half], x[c][2 * half + 1]);
  }
}

// ---- products ----

// The bits of a pair that lie on the diagonal of an 8 x 8 tile, rows by g and pairs of columns by t.
__device__ __forceinline__ uint32_t diagonal_mask(int lane) {
  return lane / 8 != lane % 4 ? 0 : lane / 4 % 2 == 0 ? 0xffffu : 0xffff0000u;
}

// Zeros that the compiler does not recognise as such: it would move known zeros into registers before each product that
// reads them. All threads of a block call it together, before they use dynamic shared memory.
template <int n>
__device__ __forceinline__ void opaque_zeros(uint32_t (&zeros)[n]) {
  volatile uint32_t* const own = dynamic_shared<uint32_t>() + threadIdx.x;
  *own = 0;
#pragma unroll
  for (uint32_t& zero : zeros) zero = *own;
  __syncthreads();
}

// A value for each key and both ranks, as diagonal matrices of 16 x 16: left operands of mma_bf16.
struct DiagonalFragments {
  uint32_t rank[2][4];  // tiles of keys 0-7 and of keys 8-15, both by themselves, are 0 and 3; the others stay zero

  __device__ __forceinline__ DiagonalFragments() {  // all threads of the block together
    uint32_t zeros[4];
    opaque_zeros(zeros);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      rank[r][1] = zeros[2 * r];
      rank[r][2] = zeros[2 * r + 1];
    }
  }
  // For a short life, of one thread: `zero` moved into each.
  __device__ __forceinline__ explicit DiagonalFragments(uint32_t zero) {
#pragma unroll
    for (uint32_t(&r)[4] : rank) r[1] = kept(zero), r[2] = kept(zero);
  }
};

// d = sum over heads of weight * a for each key: the diagonal of a weight^T.
template <int N>
__device__ __forceinline__ void sum_heads(uint32_t (&d)[4], const AFragment<N>& a, const AFragment<N>& weight,
                                          uint32_t mask) {
  float low[4] = {}, high[4] = {};
#pragma unroll
  for (int k = 0; k < N / 16; ++k) {
    mma_bf16(low, a[k], weight[k][0], weight[k][2]);
    mma_bf16(high, a[k], weight[k][1], weight[k][3]);
  }
  d[0] = pack_bf16(low[0], low[1]) & mask;
  if (N == 32) d[1] = kept(0u), d[2] = kept(0u);  // kept for all rows, they would be moved before each product
  d[3] = pack_bf16(high[2], high[3]) & mask;
}

// x[j,m] += d_j b[j,m]
template <int N>
__device__ __forceinline__ void add_scaled(Accumulator<N>& x, const uint32_t (&d)[4], const BFragment<N>& b) {
#pragma unroll
  for (int c = 0; c < N / 8; ++c) mma_bf16(x[c], d, b[c / 2][c % 2 * 2], b[c / 2][c % 2 * 2 + 1]);
}

// x[j,m] += a[j,m] b[j,m], the product rounded to bf16: a sum with an identity matrix needs no unpacking. Or exact, by
// adding what was rounded off.
template <int N, bool exact = false>
__device__ __forceinline__ void add_product(Accumulator<N>& x, const AFragment<N>& a, const AFragment<N>& b,
                                            uint32_t mask) {
  const uint32_t identity = mask & 0x3f803f80u;
#pragma unroll
  for (int c = 0; c < N / 8; ++c) {
    const uint32_t a0 = a[c / 2][c % 2 * 2], a1 = a[c / 2][c % 2 * 2 + 1];
    const uint32_t b0 = b[c / 2][c % 2 * 2], b1 = b[c / 2][c % 2 * 2 + 1];
    const uint32_t p0 = multiply_bf16x2(a0, b0), p1 = multiply_bf16x2(a1, b1);
    mma_bf16(x[c], p0, p1, identity);
    if (exact)
      mma_bf16(x[c], fma_bf16x2(a0, b0, negative_bf16x2(p0)), fma_bf16x2(a1, b1, negative_bf16x2(p1)), identity);
  }
}

// x += a C, or a C^T. `row`: this lane's matrix_row or transposed_row.
template <int N, bool transposed>
__device__ __forceinline__ void add_mixed(Accumulator<N>& x, const AFragment<N>& a, const bfloat16* row) {
#pragma unroll
  for (int out = 0; out < N / 16; ++out) {
#pragma unroll
    for (int k = 0; k < N / 16; ++k) {
      uint32_t b[4];
      ldmatrix<!transposed>(b, row + (transposed ? out : k) * 16 * kMatrixPitch<N> + (transposed ? k : out) * 16);
      mma_bf16(x[2 * out], a[k], b[0], b[1]);
      mma_bf16(x[2 * out + 1], a[k], b[2], b[3]);
    }
  }
}

// ---- softmax ----

constexpr float kLog2e = 1.4426950408889634f, kLn2 = 0.6931471805599453f;
constexpr float kLowest = -1e30f;  // stands for the largest of no scores; finite, so that differences are no NaN

// p = exp(x - lse_m). `lse`, of the first head that this lane holds.
template <int N>
__device__ __forceinline__ void exponentials(Accumulator<N>& x, const float* lse) {
#pragma unroll
  for (int c = 0; c < N / 8; ++c) {
    const float2 l = *reinterpret_cast<const float2*>(lse + c * 8);
    const float low = -kLog2e * l.x, high = -kLog2e * l.y;
#pragma unroll
    for (int q = 0; q < 4; ++q) x[c][q] = exp2_approx(fmaf(x[c][q], kLog2e, q % 2 ? high : low));
  }
}

// The keys [begin, end) of a tile, 0 <= begin and end <= 16, that are unmasked for a query.
struct Unmasked {
  int begin, end;
  __device__ __forceinline__ bool none() const { return begin >= end; }
  __device__ __forceinline__ bool masks(int key) const { return key < begin || key >= end; }
};

// x = 0 where the key is masked.
template <int N>
__device__ __forceinline__ void mask_tile(Accumulator<N>& x, Unmasked unmasked, int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (unmasked.masks(lane / 4 + 8 * half)) {
#pragma unroll
      for (int c = 0; c < N / 8; ++c) x[c][2 * half] = x[c][2 * half + 1] = 0;
    }
  }
}

}  // namespace braid::cuda::attention::tensor_core
