// Queries, keys and values from the one product that makes them: RMS norm over d, rotation and the copy into their
// layout in one pass, and backward the gradient of the product in another.
//
//   n = x rstd w,  rstd = 1 / sqrt(mean(x^2) + eps)          dx = rstd (dn w - x rstd mean(dn w x rstd)),  dw = sum of
//                                                            dn x rstd over the rows
//   y[e] = n[e] cos a - n[e+h] sin a                         dn[e] = dy[e] cos a + dy[e+h] sin a
//   y[e+h] = n[e+h] cos a + n[e] sin a, e < h                dn[e+h] = dy[e+h] cos a - dy[e] sin a
//   y[e] = n[e], e >= 2h                                     dn[e] = dy[e]
//
// blockIdx.y is queries, keys or values. A row, one head of one token, belongs to a team of up to 32 lanes; a lane
// holds two packs of 16 bytes: one of each half of the pairs, or two neighbours of the elements that are not rotated.
//
// Backward, a block adds up dw over its rows in registers; a second kernel adds the blocks' sums. The partition of the
// rows depends on the shape only, so the bits do too.
#include <algorithm>
#include <cmath>

#include "braid/cuda/device/kernel.h"
#include "braid/cuda/device/reduce.cuh"
#include "braid/cuda/device/vector_io.cuh"
#include "braid/tensor/kernels/split_qkv.h"

namespace braid::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kParts = 528;  // blocks that add up dw: four for each of the 132 processors of an H100 or H200
constexpr int64_t kLargestHeadBytes = 768;  // 24 pairs of packs; an incomplete pack at each end makes it 26 at most

// Queries, keys or values.
template <class T>
struct Part {
  T* data;                      // the result, or its gradient; null: zeros
  int64_t sample, token, head;  // strides of data
  int64_t heads, column;        // of the product's row: the first element
  const T* weight;              // of the norm, or null
  int h;                        // pairs that are rotated
};

template <class T>
struct Call {
  using A = Accumulate<T>;
  Part<T> part[3];
  int64_t tokens, steps, width;  // B T, T, (N + 2 Nkv) d
  int64_t table_batch;           // elements of a table between samples, 0 when they share it
  const A *cosine, *sine;
  A eps;
  int d, team;
};

// A lane's elements of a row: [i, i + W) of the array that begins at `first` and [j, j + W) of the one at `second`, as
// far as these arrays, of n elements, have them.
template <class T>
struct Lane {
  static constexpr int W = kVectorWidth<T>;
  int first, second, i, j, n;
  bool rotated;  // pairs of one element of each array

  __device__ Lane(int lane, int d, int h) {
    const int pairs = (h + W - 1) / W;
    rotated = lane < pairs;
    first = rotated ? 0 : 2 * h;
    second = rotated ? h : 2 * h;
    i = rotated ? lane * W : (lane - pairs) * 2 * W;
    j = rotated ? i : i + W;
    n = rotated ? h : d - 2 * h;
  }
  // The column of element e < 2 W of the lane, or -1.
  __device__ int column(int e) const {
    const int at = e < W ? i + e : j + e - W;
    return at < n ? (e < W ? first : second) + at : -1;
  }
};

template <class T>
struct Packs {
  static constexpr int W = kVectorWidth<T>;
  Pack<T> a, b;
  __device__ void load(const T* row, const Lane<T>& lane, bool exists) {
    const int n = exists ? lane.n : 0;
    a = load_pack<W>(row + lane.first, lane.i, n);
    b = load_pack<W>(row + lane.second, lane.j, n);
  }
  __device__ void store(T* row, const Lane<T>& lane) const {
    store_pack(row + lane.first, lane.i, lane.n, a);
    store_pack(row + lane.second, lane.j, lane.n, b);
  }
  // f(element, its index) for the lane's 2 W elements.
  template <class F>
  __device__ __forceinline__ void each(F f) {
#pragma unroll
    for (int e = 0; e < W; ++e) {
      f(a[e], e);
      f(b[e], e + W);
    }
  }
  __device__ __forceinline__ Accumulate<T> at(int e) const { return Accumulate<T>(e < W ? a[e] : b[e - W]); }
};

// Pairs by the angle of their token, or with sign = -1 by its negative.
template <class T>
__device__ __forceinline__ void rotate(Packs<T>& x, const Lane<T>& lane, const Accumulate<T>* cosine,
                                       const Accumulate<T>* sine, Accumulate<T> sign) {
  using A = Accumulate<T>;
  constexpr int W = kVectorWidth<T>;
  const Pack<A, W> c = load_pack<W>(cosine, lane.i, lane.n), s = load_pack<W>(sine, lane.i, lane.n);
#pragma unroll
  for (int e = 0; e < W; ++e) {
    const A a = A(x.a[e]), b = A(x.b[e]), sine_e = sign * s[e];
    x.a[e] = T(a * c[e] - b * sine_e);
    x.b[e] = T(b * c[e] + a * sine_e);
  }
}

// Row r of a part, which need not exist.
template <class T>
struct RowOf {
  bool exists;
  int64_t token, head, sample, step;
  __device__ RowOf(const Call<T>& call, const Part<T>& part, int64_t r)
      : exists(r < call.tokens * part.heads), token(quotient(r, part.heads)), head(r - token * part.heads) {
    sample = quotient(token, call.steps);
    step = token - sample * call.steps;
  }
  __device__ int64_t product(const Call<T>& call, const Part<T>& part) const {
    return token * call.width + part.column + head * call.d;
  }
  __device__ int64_t result(const Part<T>& part) const {
    return sample * part.sample + step * part.token + head * part.head;
  }
  __device__ int64_t angles(const Call<T>& call, const Part<T>& part) const {
    return sample * call.table_batch + step * part.h;
  }
};

template <class T>
__device__ Accumulate<T> rstd_of(const Call<T>& call, Accumulate<T> squares) {
  using A = Accumulate<T>;
  return A(1) / std::sqrt(lanes_sum(squares, call.team) / A(call.d) + call.eps);
}

template <class T>
__global__ void __launch_bounds__(kThreads) split_qkv_kernel(Call<T> call, const T* x) {
  using A = Accumulate<T>;
  const Part<T>& part = call.part[blockIdx.y];
  const int team = call.team, teams = kThreads / team, thread = static_cast<int>(threadIdx.x);
  const int64_t base = int64_t{blockIdx.x} * teams;
  if (base >= call.tokens * part.heads) return;
  const RowOf<T> row(call, part, base + thread / team);
  const Lane<T> lane(thread % team, call.d, part.h);
  Packs<T> n;
  n.load(x + row.product(call, part), lane, row.exists);
  if (part.weight) {
    A squares = A(0);
    n.each([&](T v, int) { squares += A(v) * A(v); });
    const A rstd = rstd_of(call, squares);
    Packs<T> w;
    w.load(part.weight, lane, true);
    n.each([&](T& v, int e) { v = T(A(v) * rstd * w.at(e)); });
  }
  if (!row.exists) return;
  if (lane.rotated) {
    const int64_t at = row.angles(call, part);
    rotate(n, lane, call.cosine + at, call.sine + at, A(1));
  }
  n.store(part.data + row.result(part), lane);
}

// parts: (blocks, 2, d), the sums of dw of queries and keys, or null.
template <class T>
__global__ void __launch_bounds__(kThreads, 3)
    split_qkv_backward_kernel(Call<T> call, const T* x, T* dx, Accumulate<T>* parts) {
  using A = Accumulate<T>;
  constexpr int W = kVectorWidth<T>;
  const Part<T>& part = call.part[blockIdx.y];
  const int team = call.team, teams = kThreads / team, thread = static_cast<int>(threadIdx.x);
  const int64_t rows = call.tokens * part.heads;
  const Lane<T> lane(thread % team, call.d, part.h);
  A dw[2 * W] = {};
  for (int64_t base = int64_t{blockIdx.x} * teams; base < rows; base += int64_t{gridDim.x} * teams) {
    const RowOf<T> row(call, part, base + thread / team);
    Packs<T> g;
    g.load(part.data + row.result(part), lane, row.exists && part.data);
    if (lane.rotated && row.exists) {
      const int64_t at = row.angles(call, part);
      rotate(g, lane, call.cosine + at, call.sine + at, A(-1));
    }
    if (part.weight) {
      Packs<T> v, w;
      v.load(x + row.product(call, part), lane, row.exists);
      w.load(part.weight, lane, true);
      A squares = A(0), dot = A(0);
      v.each([&](T u, int e) {
        squares += A(u) * A(u);
        dot += g.at(e) * w.at(e) * A(u);
      });
      const A rstd = rstd_of(call, squares);  // all lanes take part in its sum
      const A s = row.exists ? rstd : A(0);   // a row that does not exist has no squares: infinite with eps = 0
      const A factor = lanes_sum(dot, team) * s * s * s / A(call.d);
      g.each([&](T& slope, int e) {
        dw[e] += A(slope) * v.at(e) * s;
        slope = T(s * (A(slope) * w.at(e)) - factor * v.at(e));
      });
    }
    if (row.exists) g.store(dx + row.product(call, part), lane);
  }
  if (!parts || !part.weight) return;
  struct Sums {
    A value[kThreads * 2 * W];  // (teams, lanes of a team, 2 W)
  };
  Sums& sums = shared<Sums>();
#pragma unroll
  for (int e = 0; e < 2 * W; ++e) sums.value[thread * 2 * W + e] = dw[e];
  __syncthreads();
  for (int k = thread; k < team * 2 * W; k += kThreads) {
    A sum = A(0);
    for (int t = 0; t < teams; ++t) sum += sums.value[t * team * 2 * W + k];
    const int column = Lane<T>(k / (2 * W), call.d, part.h).column(k % (2 * W));
    if (column >= 0) parts[(int64_t{blockIdx.x} * 2 + blockIdx.y) * call.d + column] = sum;
  }
}

// Block c adds column c of parts (count, 2, d).
template <class T>
__global__ void __launch_bounds__(kThreads)
    qkv_norm_gradients(const Accumulate<T>* parts, int64_t count, int d, T* dq_norm, T* dk_norm) {
  using A = Accumulate<T>;
  const int column = static_cast<int>(blockIdx.x);
  A sum = A(0);
  for (int64_t p = threadIdx.x; p < count; p += kThreads) sum += parts[p * 2 * d + column];
  sum = block_sum<kThreads>(sum);
  if (threadIdx.x == 0) (column < d ? dq_norm[column] : dk_norm[column - d]) = T(sum);
}

template <class T>
Call<T> call_of(const QkvSplit& how, int64_t samples, int64_t steps) {
  using A = Accumulate<T>;
  constexpr int W = kVectorWidth<T>;
  Call<T> call{};
  call.tokens = samples * steps;
  call.steps = steps;
  call.width = (how.heads + 2 * how.kv_heads) * how.head_dim;
  call.d = static_cast<int>(how.head_dim);
  call.eps = A(how.norm_eps);
  const int h = how.cosine ? static_cast<int>(how.cosine.dim(2)) : 0;
  if (how.cosine) {
    call.cosine = how.cosine.data<A>();
    call.sine = how.sine.data<A>();
    call.table_batch = how.cosine.dim(0) == 1 ? 0 : steps * h;
  }
  const auto lanes = [&](int pairs) { return (pairs + W - 1) / W + (call.d - 2 * pairs + 2 * W - 1) / (2 * W); };
  call.team = 1;
  while (call.team < std::max(lanes(h), lanes(0))) call.team *= 2;
  const Tensor* weights[] = {&how.q_norm, &how.k_norm, nullptr};
  int64_t column = 0;
  for (int k = 0; k < 3; ++k) {
    Part<T>& part = call.part[k];
    part.heads = k == 0 ? how.heads : how.kv_heads;
    part.column = column;
    part.weight = weights[k] && *weights[k] ? weights[k]->data<T>() : nullptr;
    part.h = k == 2 ? 0 : h;
    column += part.heads * how.head_dim;
  }
  return call;
}

template <class T>
void set_data(Part<T>& part, const Tensor& x, T* data) {
  part.data = data;
  if (x) part.sample = x.strides()[0], part.token = x.strides()[1], part.head = x.strides()[2];
}

template <class T>
unsigned blocks_for(const Call<T>& call) {
  const int64_t rows = call.tokens * std::max(call.part[0].heads, call.part[1].heads), teams = kThreads / call.team;
  return static_cast<unsigned>((rows + teams - 1) / teams);
}

void split_qkv(In x, const QkvSplit& how, Out q, Out k, Out v) {
  if (x.numel() == 0) return;
  visit_float(x.dtype(), "split_qkv", [&]<class T>() {
    Call<T> call = call_of<T>(how, x.dim(0), x.dim(1));
    Tensor* const results[] = {&q, &k, &v};
    for (int i = 0; i < 3; ++i) set_data(call.part[i], *results[i], results[i]->mutable_data<T>());
    launch(split_qkv_kernel<T>, {.grid = dim3(blocks_for(call), 3), .block = kThreads}, call, x.data<T>());
  });
}

void split_qkv_backward(In x, const QkvSplit& how, In dq, In dk, In dv, Out dx, Out dq_norm, Out dk_norm) {
  visit_float(dx.dtype(), "split_qkv_backward", [&]<class T>() {
    using A = Accumulate<T>;
    Call<T> call = call_of<T>(how, dx.dim(0), dx.dim(1));
    const Tensor* const gradients[] = {&dq, &dk, &dv};
    for (int i = 0; i < 3; ++i) {
      const Tensor& g = *gradients[i];
      set_data(call.part[i], g, g ? const_cast<T*>(g.data<T>()) : nullptr);
    }
    unsigned blocks = blocks_for(call);
    if (dq_norm) blocks = std::min(blocks, static_cast<unsigned>(kParts));
    Tensor parts = dq_norm ? empty({blocks, 2, call.d}, accumulate_type(dx.dtype()), dx.device()) : Tensor();
    if (dx.numel() > 0)
      launch(split_qkv_backward_kernel<T>, {.grid = dim3(blocks, 3), .block = kThreads}, call,
             x ? x.data<T>() : nullptr, dx.mutable_data<T>(), parts ? parts.mutable_data<A>() : nullptr);
    if (dq_norm)  // sums over no rows are zeros
      launch(qkv_norm_gradients<T>, {.grid = static_cast<unsigned>(2 * call.d), .block = kThreads}, parts.data<A>(),
             int64_t{blocks}, call.d, dq_norm.mutable_data<T>(), dk_norm.mutable_data<T>());
  });
}

}  // namespace

constinit const SplitQkvKernels split_qkv_kernels{
    .forward = split_qkv,
    .backward = split_qkv_backward,
    .largest_head_bytes = kLargestHeadBytes,
};

}  // namespace braid::cuda
