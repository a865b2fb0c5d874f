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

// Braid's own kernel for large products: on one thread, and on all of them with the same bits.
template <class T>
void gemm_packed(const Gemm<T>& g);
template <class T>
void gemm_packed_in_parallel(const Gemm<T>& g);

template <class T>
struct GemmKernel {
  const char* name;
  void (*run)(const Gemm<T>& g);                    // m, n, k >= 1; one thread; `start` is done
  void (*in_parallel)(const Gemm<T>& g) = nullptr;  // the same bits on all threads; null: tiles of C are cut by gemm()
};

// The candidates as compiled for one instruction set ("eigen", "native", "packed", and "dnnl" when it was found and T
// is float), and which of them gemm() takes for C (m, n) with depth k.
template <class T>
struct GemmTable {
  std::span<const GemmKernel<T>> kernels;
  const GemmKernel<T>& (*choose)(bool tb, int64_t m, int64_t n, int64_t k);
};
struct GemmTables {
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
