// Tensors as matrices and vectors of Eigen, without a copy, and back. Header only; Eigen is found as <Eigen/Core>.
//
//   as_mutable_matrix<float>(c).noalias() = as_matrix<float>(a) * as_matrix<float>(b).transpose();
//   Tensor x = from_eigen(covariance);
//
// A map is valid while the tensor or a view of it lives. It has the tensor's strides: a transposed or sliced tensor
// needs no copy. The element type T is f64, f32, i64, i32 or u8 and must be that of the tensor, which is on the CPU;
// errors (misuse) say what was found instead. Nothing done by Eigen has a derivative.
#pragma once
#include <Eigen/Core>
#include <type_traits>

#include "braid/tensor/tensor.h"

namespace braid {

template <class T>
using EigenMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using EigenVector = Eigen::Matrix<T, Eigen::Dynamic, 1>;
// M: EigenMatrix<T> or const EigenMatrix<T>.
template <class M>
using EigenMatrixMap = Eigen::Map<M, Eigen::Unaligned, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;
template <class V>
using EigenVectorMap = Eigen::Map<V, Eigen::Unaligned, Eigen::InnerStride<Eigen::Dynamic>>;

namespace detail {

template <class T>
void check_eigen(const Tensor& x, int rank, bool writes, const char* op) {
  static_assert(!std::is_same_v<T, bfloat16> && !std::is_same_v<T, float16>,
                "Eigen has 16-bit types of its own: convert with cast(x, DType::f32) first");
  check(x.dtype() == dtype_of<T>(), op,
        [&] { return str("the tensor holds ", x.dtype(), ", not ", dtype_of<T>(), ": call cast(x, dtype) first"); });
  check(x.rank() == rank, op, [&] {
    return str("needs a tensor of rank ", rank, ", got ", x.shape(), ": call reshape(x, shape), or select one part");
  });
  check(x.device() == kCpu, op, [&] { return str("the tensor is on ", x.device(), ": call to(x, kCpu) first"); });
  for (int a = 0; a < rank && writes; ++a)
    check(x.strides()[a] != 0 || x.dim(a) < 2, op, [&] {
      return str("axis ", a, " of ", x.shape(),
                 " repeats its elements (stride 0), so it cannot be written: clone() it");
    });
}

template <class M, class T>
EigenMatrixMap<M> matrix_over(T* data, const Tensor& x) {
  return {data, x.dim(0), x.dim(1), {x.strides()[0], x.strides()[1]}};
}
template <class V, class T>
EigenVectorMap<V> vector_over(T* data, const Tensor& x) {
  return {data, x.dim(0), Eigen::InnerStride<Eigen::Dynamic>(x.strides()[0])};
}

}  // namespace detail

// (rows, columns) and (n). The mutable maps are in-place writes, as mutable_data() is.
template <class T>
EigenMatrixMap<const EigenMatrix<T>> as_matrix(const Tensor& x) {
  detail::check_eigen<T>(x, 2, false, "as_matrix");
  return detail::matrix_over<const EigenMatrix<T>>(x.data<T>(), x);
}
template <class T>
EigenMatrixMap<EigenMatrix<T>> as_mutable_matrix(Tensor& x) {
  detail::check_eigen<T>(x, 2, true, "as_mutable_matrix");
  return detail::matrix_over<EigenMatrix<T>>(x.mutable_data<T>(), x);
}
template <class T>
EigenVectorMap<const EigenVector<T>> as_vector(const Tensor& x) {
  detail::check_eigen<T>(x, 1, false, "as_vector");
  return detail::vector_over<const EigenVector<T>>(x.data<T>(), x);
}
template <class T>
EigenVectorMap<EigenVector<T>> as_mutable_vector(Tensor& x) {
  detail::check_eigen<T>(x, 1, true, "as_mutable_vector");
  return detail::vector_over<EigenVector<T>>(x.mutable_data<T>(), x);
}
// The elements of a temporary would be gone at the end of the statement.
template <class T>
void as_matrix(const Tensor&& x) = delete;
template <class T>
void as_vector(const Tensor&& x) = delete;

// A copy of a matrix or an expression of Eigen: (rows, columns), and (n) where the type is a vector.
template <class Derived>
Tensor from_eigen(const Eigen::MatrixBase<Derived>& m) {
  using T = typename Derived::Scalar;
  Tensor x = empty({m.rows(), m.cols()}, dtype_of<T>());
  as_mutable_matrix<T>(x) = m;
  return Derived::IsVectorAtCompileTime ? x.reshaped({m.size()}) : x;
}

}  // namespace braid
