// Matrices in f64 by plain loops, for the tests of rules that update whole matrices.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "braid/tensor/tensor.h"

namespace braid::test {

struct Matrix {
  int64_t rows, columns;
  std::vector<double> x;
  double& at(int64_t i, int64_t j) { return x[static_cast<size_t>(i * columns + j)]; }
  double at(int64_t i, int64_t j) const { return x[static_cast<size_t>(i * columns + j)]; }
};

inline Matrix matrix(const Tensor& t) { return {t.dim(0), t.dim(1), t.to_vector<double>()}; }

inline Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c{a.rows, b.columns, std::vector<double>(static_cast<size_t>(a.rows * b.columns))};
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t k = 0; k < a.columns; ++k)
      for (int64_t j = 0; j < b.columns; ++j) c.at(i, j) += a.at(i, k) * b.at(k, j);
  return c;
}

inline Matrix turned(const Matrix& a) {
  Matrix b{a.columns, a.rows, a.x};
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.columns; ++j) b.at(j, i) = a.at(i, j);
  return b;
}

inline double norm(const Matrix& a) {
  double sum = 0;
  for (const double v : a.x) sum += v * v;
  return std::sqrt(sum);
}

// One-sided Jacobi: the columns of the result are orthogonal, their lengths are the singular values.
inline std::vector<double> singular_values(const Tensor& t) {
  Matrix a = matrix(t);
  if (a.columns > a.rows) a = turned(a);
  for (int sweep = 0; sweep < 40; ++sweep) {
    for (int64_t p = 0; p < a.columns; ++p) {
      for (int64_t q = p + 1; q < a.columns; ++q) {
        double pp = 0, qq = 0, pq = 0;
        for (int64_t i = 0; i < a.rows; ++i)
          pp += a.at(i, p) * a.at(i, p), qq += a.at(i, q) * a.at(i, q), pq += a.at(i, p) * a.at(i, q);
        if (std::fabs(pq) < 1e-15 * std::sqrt(pp * qq)) continue;
        const double angle = 0.5 * std::atan2(2 * pq, pp - qq), c = std::cos(angle), s = std::sin(angle);
        for (int64_t i = 0; i < a.rows; ++i) {
          const double x = a.at(i, p), y = a.at(i, q);
          a.at(i, p) = c * x + s * y, a.at(i, q) = c * y - s * x;
        }
      }
    }
  }
  std::vector<double> values;
  for (int64_t j = 0; j < a.columns; ++j) {
    double square = 0;
    for (int64_t i = 0; i < a.rows; ++i) square += a.at(i, j) * a.at(i, j);
    values.push_back(std::sqrt(square));
  }
  std::ranges::sort(values);
  return values;
}

}  // namespace braid::test
