// Row-invariant matrix products (tensor/row_invariant.h): the cut into blocks and their threads.
#pragma once
#include <cstdint>

#include "braid/tensor/cpu/row_invariant/problem.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu::row_invariant {

template <class T>
struct Operands {
  const T* x;
  const T* w;
};

// `count` products y (m, n) = x (m, k) W^T with W (n, k), one after the other in y, contiguous.
template <class T, class Y>
struct Products {
  int64_t count, m, n, k;   // each at least 1
  int64_t x_row, x_depth;   // strides of x
  int64_t w_row, w_depth;   // strides of W, one of them 1
  const T* bias = nullptr;  // (n), added to each row
  bool accumulate = false;  // y += instead of y =
  Y* y = nullptr;
};

// operands(i): of product i; called from several threads. Sums and additions are f32, or f64 for f64; y is rounded
// once.
template <class T, class Y>
void multiply(const Products<T, Y>& p, FunctionRef<Operands<T>(int64_t i)> operands);

}  // namespace braid::cpu::row_invariant
