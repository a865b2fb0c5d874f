// Rung 1: the formula, one kernel a line. A thread computes one element, or one pair of a query and a key; every
// intermediate result goes to memory as (B, N, T, S).
//
//   S = scale q k^T | S' = Compose_pre(S), -inf where masked | P = softmax(S') | P' = Compose_post(P) | y = P' v
#include "tests/cuda/attention/ladder/formula.cuh"
// (first: it includes kernel.h)
#include "braid/tensor/kernels/math.h"
#include "tests/cuda/attention/ladder/ladder.h"

namespace braid::ladder {

namespace {

constexpr int kThreads = 128, kMaxHeads = 32;
__device__ int this_thread() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

// S[b,n,i,j] = scale sum_e q[b,i,n,e] k[b,j,n,e]
__global__ void scores(Sizes z, const float* q, const float* k, float* s) {
  const int index = this_thread(), j = index % z.S, i = index / z.S % z.T, n = index / z.S / z.T % z.N;
  const int b = index / z.S / z.T / z.N;
  if (b >= z.B) return;
  const float* query = q + ((b * z.T + i) * z.N + n) * z.d;
  const float* key = k + ((b * z.S + j) * z.N + n) * z.d;
  float sum = 0;
  for (int e = 0; e < z.d; ++e) sum += query[e] * key[e];
  s[index] = z.scale * sum;
}

// s[b,:,i,j] = Compose(s[b,:,i,j]), or -inf where masked. Heads lie T S elements apart.
__global__ void mix(Sizes z, Mixing c, float masked, float* s) {
  const int index = this_thread(), j = index % z.S, i = index / z.S % z.T, b = index / z.S / z.T;
  if (b >= z.B) return;
  float* pair = s + (b * z.N * z.T + i) * z.S + j;
  float a[kMaxHeads], out[kMaxHeads];
  for (int n = 0; n < z.N; ++n) a[n] = pair[n * z.T * z.S];
  mix_heads(z, c, b, i, j, a, out);
  for (int n = 0; n < z.N; ++n) pair[n * z.T * z.S] = z.masked(i, j) ? masked : out[n];
}

// A row of S keys, in place; zeros where all are masked.
__global__ void softmax_rows(Sizes z, float* s) {
  const int row = this_thread();
  if (row >= z.B * z.N * z.T) return;
  float *x = s + row * z.S, largest = -INFINITY, sum = 0;
  for (int j = 0; j < z.S; ++j) largest = x[j] > largest ? x[j] : largest;
  for (int j = 0; j < z.S; ++j) sum += x[j] = x[j] == -INFINITY ? 0 : math::exp(x[j] - largest);
  for (int j = 0; j < z.S; ++j) x[j] = sum > 0 ? x[j] / sum : 0;
}

// y[b,i,n,e] = sum_j P'[b,n,i,j] v[b,j,n,e]
__global__ void values(Sizes z, const float* p, const float* v, float* y) {
  const int index = this_thread(), e = index % z.d, n = index / z.d % z.N, i = index / z.d / z.N % z.T;
  const int b = index / z.d / z.N / z.T;
  if (b >= z.B) return;
  const float* row = p + ((b * z.N + n) * z.T + i) * z.S;
  float sum = 0;
  for (int j = 0; j < z.S; ++j) sum += row[j] * v[((b * z.S + j) * z.N + n) * z.d + e];
  y[index] = sum;
}

cuda::Launch one_thread_each(int count) {
  return {.grid = static_cast<unsigned>((count + kThreads - 1) / kThreads), .block = kThreads};
}

}  // namespace

void naive(const DcmhaInputs& x, Tensor& y) {
  const Sizes z(x);
  Tensor buffer = empty({z.B, z.N, z.T, z.S}, DType::f32, x.q.device());
  float* const s = buffer.mutable_data<float>();
  const int pairs = z.B * z.T * z.S;
  cuda::launch(scores, one_thread_each(pairs * z.N), z, x.q.data<float>(), x.k.data<float>(), s);
  cuda::launch(mix, one_thread_each(pairs), z, Mixing(x.pre), -INFINITY, s);
  cuda::launch(softmax_rows, one_thread_each(z.B * z.N * z.T), z, s);
  cuda::launch(mix, one_thread_each(pairs), z, Mixing(x.post), 0.0f, s);
  cuda::launch(values, one_thread_each(z.B * z.T * z.N * z.d), z, s, x.v.data<float>(), y.mutable_data<float>());
}

}  // namespace braid::ladder
