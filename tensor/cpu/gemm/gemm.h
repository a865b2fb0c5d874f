// Matrix products on the CPU: C = alpha * op(A) * op(B) + beta * C, row-major, with strides, in parallel.
//
// C is cut into tiles, and a small C of great depth into slices of the depth whose sums are added up; one thread
// computes a part with one single-threaded kernel. The cut depends on the shape alone, but for a kernel whose elements
// have the same bits in any tile. So the result has the same bits for every number of threads and in every run on the
// same kind of processor.
#pragma once
#include <cstdint>

#include "braid/tensor/cpu/gemm/kernels.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {

// See Gemm in kernels.h for the arguments. T is float or double; any of m, n, k may be 0 (k == 0: c = beta * c).
// c must not overlap a or b. Rows of a tile of c are set to `start` just before the tile is computed: it is then in
// cache.
template <class T>
void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b, int64_t ldb,
          T beta, T* c, int64_t ldc, const T* start = nullptr);

template <class T>
struct GemmOperands {
  const T* a;
  const T* b;
  T* c;
};

// `count` products of one shape: operands(i) gives the matrices of product i. They share the threads: many small
// products run side by side, few large ones are cut into tiles. `operands` is called from several threads; a and b may
// repeat (broadcast batches), every c must be its own.
template <class T>
void gemm_batched(int64_t count, FunctionRef<GemmOperands<T>(int64_t i)> operands, bool ta, bool tb, int64_t m,
                  int64_t n, int64_t k, T alpha, int64_t lda, int64_t ldb, T beta, int64_t ldc,
                  const T* start = nullptr);

// The same product with a given kernel instead of the chosen one, on the same tiles; for tests and benchmarks.
template <class T>
void gemm_with(const GemmKernel<T>& kernel, const Gemm<T>& g);
template <class T>
void gemm_batched_with(const GemmKernel<T>& kernel, int64_t count, FunctionRef<GemmOperands<T>(int64_t i)> operands,
                       const Gemm<T>& shape);

}  // namespace braid::cpu
