#include "braid/models/inspect/spectrum.h"

#define EIGEN_DONT_PARALLELIZE
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <string>

#include "braid/tensor/error.h"

namespace braid::models {

std::vector<double> singular_values(std::span<const double> matrix, int64_t rows, int64_t columns) {
  check(std::ssize(matrix) == rows * columns, "singular_values",
        [&] { return str(matrix.size(), " elements are no matrix of ", rows, " x ", columns); });
  for (const double x : matrix)
    check(std::isfinite(x), ErrorKind::numerical, [&] {
      return "singular values: expected finite elements, found " + std::to_string(x) + "; check the model's weights";
    });
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::MatrixXd a = Eigen::Map<const RowMajor>(matrix.data(), rows, columns);
  const Eigen::VectorXd s = Eigen::BDCSVD<Eigen::MatrixXd>(a).singularValues();
  return {s.data(), s.data() + s.size()};
}

double effective_rank(std::span<const double> s) {
  double sum = 0, entropy = 0;
  for (const double x : s) sum += x;
  if (!(sum > 0)) return 0;
  for (const double x : s)
    if (x > 0) entropy -= x / sum * std::log(x / sum);
  return std::exp(entropy);
}

double stable_rank(std::span<const double> s) {
  if (s.empty() || !(s[0] > 0)) return 0;
  double squares = 0;
  for (const double x : s) squares += (x / s[0]) * (x / s[0]);
  return squares;
}

int64_t numerical_rank(std::span<const double> s, double tolerance) {
  return std::ranges::count_if(s, [&](double x) { return x > tolerance * s[0]; });
}

}  // namespace braid::models
