// Tensors as matrices of Eigen, and back: the principal directions of a cloud of points by Eigen's solver.
#include <braid/autograd.h>
#include <braid/eigen.h>
#include <braid/tensor.h>

#include <Eigen/Eigenvalues>
#include <cmath>
#include <cstdio>
using namespace braid;

int main() {
  const Tensor noise = randn({2000, 3}, RandomKey{.seed = 1}, DType::f64);
  const Tensor points = noise * tensor({3, 1, 0.2}, DType::f64);  // (n, 3), longest along axis 0

  const auto p = as_matrix<double>(points);  // no copy
  const Eigen::MatrixXd covariance = p.transpose() * p / static_cast<double>(p.rows());
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(covariance);
  const Tensor directions = from_eigen(solver.eigenvectors());    // (3, 3), columns
  const Tensor lengths = sqrt(from_eigen(solver.eigenvalues()));  // (3), ascending
  std::printf("lengths %.1f %.1f %.1f\n", as_span<double>(lengths)[0], as_span<double>(lengths)[1],
              as_span<double>(lengths)[2]);

  // A strided view is a map too, and a map can be written.
  const Tensor across = transpose(points);  // (3, n)
  Tensor projected = empty({3, 2000}, DType::f64);
  as_mutable_matrix<double>(projected).noalias() = solver.eigenvectors().transpose() * as_matrix<double>(across);
  const Tensor same = matmul(transpose(directions), across);
  const double error = max(abs(projected - same)).item();
  Tensor last = select(projected, 0, 2);
  as_mutable_vector<double>(last) /= as_vector<double>(last).norm();
  std::printf("Eigen and Braid agree: %s\n",
              error < 1e-12 && std::fabs(as_vector<double>(last).norm() - 1) < 1e-12 ? "yes" : "no");
  int rejected = 0;
  const auto expect_error = [&](auto call) {
    try {
      call();
    } catch (const Error& e) {
      rejected += e.kind() == ErrorKind::misuse;
    }
  };
  Tensor repeated = expand(tensor({1, 2, 3}), {4, 3});
  expect_error([&] { as_matrix<float>(points); });
  expect_error([&] { as_vector<double>(points); });
  expect_error([&] { as_mutable_matrix<float>(repeated); });
  std::printf("%d of 3 mistakes were rejected\n", rejected);
}
