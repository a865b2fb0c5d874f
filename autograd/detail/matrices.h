// What the ops of linear algebra share. For autograd/ops/*.cpp.
#pragma once
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/backend.h"

namespace braid::matrices {

inline void check_matrices(const char* op, const Tensor& a) {
  check(a.dtype() == DType::f32 || a.dtype() == DType::f64, op,
        [&] { return str("needs f32 or f64, got ", a.dtype(), "; cast it"); });
  check(a.rank() >= 2, op, [&] { return str("needs matrices (..., m, n), got shape ", a.shape()); });
}
inline void check_square(const char* op, const Tensor& a) {
  check_matrices(op, a);
  check(a.dim(-1) == a.dim(-2), op,
        [&] { return str("needs square matrices, got shape ", a.shape(), "; svd(), qr() and pinv() take others"); });
}

// The axes before the last two.
inline Shape batch_of(const Tensor& x) {
  Shape batch;
  for (int axis = 0; axis < x.rank() - 2; ++axis) batch.push_back(x.dim(axis));
  return batch;
}
inline Shape with_matrix(Shape batch, int64_t rows, int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

// Where x is factorised: on its device, or on the host where that has no such kernels.
inline Device place_of(const Tensor& x) { return backend(x.device()).linalg.solve ? x.device() : kCpu; }

// f in that place; the result comes back to x's device.
template <class F>
Tensor factorised(const Tensor& x, F&& f) {
  return to(f(to(x, place_of(x))), x.device());
}

}  // namespace braid::matrices
