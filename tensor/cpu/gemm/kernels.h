// Matrix products: the candidates that tensor/cpu/gemm/gemm.h chooses from, on one thread where nothing else is said.
// Row-major, strides in elements.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include "braid/tensor/dtype.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {

// c [m,n] = alpha * op(a) [m,k] * op(b) [k,n] + beta * c.   op(x) is x, or its transpose when ta / tb is set:
// ta: a is stored [k,m], otherwise [m,k];   tb: b is stored [n,k], otherwise [k,n].   lda, ldb, ldc: from one stored
// row to the next, at least the row's length. beta == 0 overwrites c without reading it (c may hold NaN).
template <class T>
struct Gemm {
  bool ta, tb;
  int64_t m, n, k;
  T alpha;
  const T* a;
  int64_t lda;
  const T* b;
  int64_t ldb;
  T beta;
  T* c;
  int64_t ldc;
  const T* start = nullptr;  // (n): every row of c is set to it before (gemm.h does that, tile by tile); beta is then 1
};

// The product with a vector written as one of a row, where its operands allow it.
template <class T>
Gemm<T> by_rows(const Gemm<T>& g) {
  Gemm<T> h = g;
  // A single column that is stored as a row: swap the roles, y = A x becomes y^T = x^T A^T.
  if (h.n == 1 && h.ldc == 1 && h.m > 1) {
    h.ta = !g.tb, h.tb = !g.ta, h.m = 1, h.n = g.m;
    h.a = g.b, h.lda = g.ldb, h.b = g.a, h.ldb = g.lda, h.ldc = g.m;
  }
  // A contiguous vector is a row as well as a column.
  if (h.m == 1 && h.ta && h.lda == 1) h.ta = false, h.lda = h.k;
  if (h.n == 1 && !h.tb && h.ldb == 1) h.tb = true, h.ldb = h.k;
  return h;
}

// Braid's own kernels, for the shapes where the libraries are poor: few rows, few columns, small products.
template <class T>
void gemm_native(const Gemm<T>& g);
// For a matrix and a vector, where the product is worth more than the call. Takes any shape.
template <class T>
void gemm_vector(const Gemm<T>& g);

// Braid's own kernel for large products: on one thread, and on all of them with the same bits. That one sets the rows
// of C to `start` itself, whatever beta is.
template <class T>
void gemm_packed(const Gemm<T>& g);
template <class T>
void gemm_packed_in_parallel(const Gemm<T>& g);

// The same of 16-bit matrices, multiplied and summed in f32 and rounded once. S: bfloat16 or float16, Y: S or float.
// C begins as `start`, or as beta C; beta is 0 or 1.
template <class S, class Y>
struct Gemm16 {
  bool ta, tb;
  int64_t m, n, k;
  const S* a;
  int64_t lda;
  const S* b;
  int64_t ldb;
  float beta;
  Y* c;
  int64_t ldc;
  const S* start = nullptr;
  float alpha = 1;
};
template <class S, class Y>
void gemm_packed(const Gemm16<S, Y>& g);
template <class S, class Y>
void gemm_packed_in_parallel(const Gemm16<S, Y>& g);

// The tiles of C that threads share; 1: a product that pays for no second thread.
int64_t packed_tiles(int64_t m, int64_t n, int64_t k);
// Whether products of this size are packed: they are large enough, and the code is not for AVX-512, with which this
// kernel was no faster than the others.
bool packs(int64_t m, int64_t n, int64_t k);
// Whether a product of f32 with a transposed B pays for a copy of B in rows: oneDNN multiplies it faster with AVX-512.
bool prefers_rows_of_b(int64_t m, int64_t n, int64_t k);
// Calls side_by_side(i) for `count` products of one shape on all threads at once, or one_by_one(i) for each after the
// other where one product feeds more threads than there are products. No bit of a packed product depends on it.
template <class SideBySide, class OneByOne>
void for_packed(int64_t count, int64_t m, int64_t n, int64_t k, SideBySide&& side_by_side, OneByOne&& one_by_one) {
  if (count == 1 || count < std::min<int64_t>(threads(), packed_tiles(m, n, k))) {
    for (int64_t i = 0; i < count; ++i) one_by_one(i);
  } else {
    parallel_for(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) side_by_side(i);
    });
  }
}

template <class T>
struct GemmKernel {
  const char* name;
  void (*run)(const Gemm<T>& g);                    // m, n, k >= 1; one thread; `start` is done
  void (*in_parallel)(const Gemm<T>& g) = nullptr;  // on all threads, `start` too; null: gemm() cuts C into tiles
};

// The candidates as compiled for one instruction set ("vector", "native", "packed", and "dnnl" when it was found and T
// is float), and which of them gemm() takes for C (m, n) with depth k.
template <class T>
struct GemmTable {
  std::span<const GemmKernel<T>> kernels;
  const GemmKernel<T>& (*choose)(bool tb, int64_t m, int64_t n, int64_t k);
};
struct GemmTables {
  bool packs;  // large products
  GemmTable<float> f32;
  GemmTable<double> f64;

  template <class T>
  const GemmTable<T>& of() const {
    if constexpr (sizeof(T) == 4)
      return f32;
    else
      return f64;
  }
};

}  // namespace braid::cpu
