// Products of a matrix and a vector, whose time is that of reading the matrix: its elements are read once, several rows
// at a time. One row times B, in two forms:
//   dots    B transposed, each column of it contiguous: C[j] = sum_p A[p] B[j,p], W partial sums.
//   sums    B's rows contiguous: C[j..j+W) += A[p] B[p, j..j+W), for a few p before C is written.
#include <cstring>

#include "braid/tensor/cpu/gemm/kernels.h"
#include "braid/tensor/cpu/gemm/vector.h"

namespace braid::cpu {
namespace {

// The sum of the lanes of v: the halves of a vector are added until one lane is left; of eight doubles the last four
// are added as neighbours, whose sums have always had this order.
template <class T, int W, bool neighbours = sizeof(T) * W == 64 && W == 8>
inline T lane_sum(const Vector<T, W>& v) {
  if constexpr (W == 2) {
    return v[0] + v[1];
  } else if constexpr (W == 4 && neighbours) {
    return (v[0] + v[1]) + (v[2] + v[3]);
  } else {
    Vector<T, W / 2> half[2];
    std::memcpy(half, &v, sizeof half);
    return lane_sum<T, W / 2, neighbours>(half[0] + half[1]);
  }
}

// Adds the products of a and R rows of B from depth p on to `totals`, as far as full vectors go. What is left of a
// single row goes by narrower vectors. Returns the depth that is reached.
template <class T, int W, int R>
inline int64_t add_dots(int64_t p, int64_t k, const T* a, const T* b, int64_t ldb, T (&totals)[R]) {
  using V = Vector<T, W>;
  V sum[R] = {};
  for (; p + W <= k; p += W) {
    const V x = load<V>(a + p);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sum[r] += load<V>(b + r * ldb + p) * x;
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) totals[r] += lane_sum<T, W>(sum[r]);
  if constexpr (R == 1 && W * sizeof(T) > 16)
    return add_dots<T, W / 2, R>(p, k, a, b, ldb, totals);
  else
    return p;
}

// C[j, ...) from row j of B on: R columns at a time, the rest by half as many.
template <class T, int R = 8>
void dots(const Gemm<T>& g, int64_t j = 0) {
  for (; j + R <= g.n; j += R) {
    const T* b = g.b + j * g.ldb;
    T totals[R] = {};
    for (int64_t p = add_dots<T, kWidth<T>, R>(0, g.k, g.a, b, g.ldb, totals); p < g.k; ++p)
      for (int r = 0; r < R; ++r) totals[r] += b[r * g.ldb + p] * g.a[p];
    for (int r = 0; r < R; ++r)
      g.c[j + r] = g.beta == T(0) ? g.alpha * totals[r] : g.alpha * totals[r] + g.beta * g.c[j + r];
  }
  if constexpr (R > 1) dots<T, R / 2>(g, j);
}

// C[j, j + NV W) from the rows p ... p + depth of B.
template <class T, int NV>
inline void sums_block(const Gemm<T>& g, int64_t j, int64_t p, int64_t depth, T beta) {
  constexpr int W = kWidth<T>;
  using V = Vector<T, W>;
  const int64_t step = g.ta ? g.lda : 1;
  V sum[NV] = {};
  for (int64_t q = p; q < p + depth; ++q) {
    const T x = g.a[q * step];
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) sum[v] += x * load<V>(g.b + q * g.ldb + j + v * W);
  }
#pragma GCC unroll 8
  for (int v = 0; v < NV; ++v) {
    T* out = g.c + j + v * W;
    V y = g.alpha * sum[v];
    if (beta != T(0)) y += beta * load<V>(out);
    store(out, y);
  }
}

template <class T>
void sums(const Gemm<T>& g) {
  constexpr int W = kWidth<T>;
  // Few rows at a time where they are far apart: each is a stream of its own.
  const int64_t rows = g.k < 128 ? g.k : g.ldb * int64_t(sizeof(T)) < 32000 ? 16 : 4;
  for (int64_t p = 0; p < g.k; p += rows) {
    const int64_t depth = std::min(rows, g.k - p);
    const T beta = p == 0 ? g.beta : T(1);
    int64_t j = 0;
    for (; j + 8 * W <= g.n; j += 8 * W) sums_block<T, 8>(g, j, p, depth, beta);
    for (; j + W <= g.n; j += W) sums_block<T, 1>(g, j, p, depth, beta);
    for (; j < g.n; ++j) {
      T sum = 0;
      for (int64_t q = p; q < p + depth; ++q) sum += g.a[g.ta ? q * g.lda : q] * g.b[q * g.ldb + j];
      g.c[j] = beta == T(0) ? g.alpha * sum : g.alpha * sum + beta * g.c[j];
    }
  }
}

}  // namespace

template <class T>
void gemm_vector(const Gemm<T>& g) {
  const Gemm<T> h = by_rows(g);
  if (h.m == 1 && !h.tb)
    sums(h);
  else if (h.m == 1 && !h.ta)
    dots(h);
  else
    gemm_native(g);
}

template void gemm_vector(const Gemm<float>&);
template void gemm_vector(const Gemm<double>&);

}  // namespace braid::cpu
