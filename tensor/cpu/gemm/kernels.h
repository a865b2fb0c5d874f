// Single-threaded matrix products: the candidates that tensor/cpu/gemm/gemm.h chooses from. Row-major, strides in
// elements.
#pragma once
#include <cstdint>
#include <span>

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

// Braid's own kernels, for the shapes where the libraries are poor: few rows, few columns, small products.
template <class T>
void gemm_native(const Gemm<T>& g);

template <class T>
struct GemmKernel {
  const char* name;
  void (*run)(const Gemm<T>& g);  // m, n, k >= 1; one thread
};

// Every candidate of this build ("eigen", "native", and "dnnl" when it was found and T is float).
template <class T>
std::span<const GemmKernel<T>> gemm_kernels();

}  // namespace braid::cpu
