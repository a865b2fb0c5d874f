// The formula of DCMHA (autograd/dcmha.h) for one pair of a query and a key, as the first two rungs use it.
#pragma once
#include "braid/cuda/device/kernel.h"
#include "braid/tensor/kernels/attention.h"

namespace braid::ladder {

// The sizes of a call. All arrays are contiguous, so an index is a sum of products of these.
struct Sizes {
  int B, T, S, N, d;
  AttentionMask mask;
  float scale;
  explicit Sizes(const DcmhaInputs& x)
      : B(static_cast<int>(x.q.dim(0))),
        T(static_cast<int>(x.q.dim(1))),
        S(static_cast<int>(x.k.dim(1))),
        N(static_cast<int>(x.q.dim(2))),
        d(static_cast<int>(x.q.dim(3))),
        mask(x.mask),
        scale(static_cast<float>(x.scale)) {}
  __device__ bool masked(int i, int j) const { return j < mask.first(i) || j >= mask.end(i, S); }
};

// One stage of Compose, G = 1.
struct Mixing {
  const float* base;             // (N, N)
  const float *q_down, *q_up;    // (B, T, Rq, N)
  const float *k_down, *k_up;    // (B, S, Rk, N)
  const float *q_gate, *k_gate;  // (B, T, N), (B, S, N)
  int q_rank, k_rank;
  explicit Mixing(const HeadMixing& c)
      : base(c.base.data<float>()),
        q_down(c.q_down.data<float>()),
        q_up(c.q_up.data<float>()),
        k_down(c.k_down.data<float>()),
        k_up(c.k_up.data<float>()),
        q_gate(c.q_gate.data<float>()),
        k_gate(c.k_gate.data<float>()),
        q_rank(static_cast<int>(c.q_down.dim(3))),
        k_rank(static_cast<int>(c.k_down.dim(3))) {}
};

// out[n] += sum_r (sum_m a[m] down[r,m]) up[r,n], down and up (R, N)
__device__ inline void add_low_rank(int N, int R, const float* down, const float* up, const float* a, float* out) {
  for (int r = 0; r < R; ++r) {
    float hidden = 0;
    for (int m = 0; m < N; ++m) hidden += a[m] * down[r * N + m];
    for (int n = 0; n < N; ++n) out[n] += hidden * up[r * N + n];
  }
}

// out = Compose(a), the N heads of query i and key j of sample b.
__device__ inline void mix_heads(const Sizes& z, const Mixing& c, int b, int i, int j, const float* a, float* out) {
  const int N = z.N, query = b * z.T + i, key = b * z.S + j;
  for (int n = 0; n < N; ++n) {
    out[n] = a[n] * (1 + c.q_gate[query * N + n] + c.k_gate[key * N + n]);
    for (int m = 0; m < N; ++m) out[n] += a[m] * c.base[m * N + n];
  }
  add_low_rank(N, c.q_rank, c.q_down + query * c.q_rank * N, c.q_up + query * c.q_rank * N, a, out);
  add_low_rank(N, c.k_rank, c.k_down + key * c.k_rank * N, c.k_up + key * c.k_rank * N, a, out);
}

}  // namespace braid::ladder
