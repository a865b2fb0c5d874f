#include "braid/models/inspect/spectrum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "braid/tensor/error.h"

namespace braid::models {

namespace {

using Row = std::span<double>;

// row += factor v
void add(Row row, double factor, std::span<const double> v) {
  for (size_t i = 0; i < v.size(); ++i) row[i] += factor * v[i];
}

// The reflection I - factor v v^T that takes x to (first, 0, ..., 0). v takes the place of x.
std::pair<double, double> reflection(Row x) {
  const double norm = std::sqrt(dot(x, x)), size = norm * (norm + std::fabs(x[0])), first = x[0] > 0 ? -norm : norm;
  x[0] -= first;
  return {first, size > 0 ? 1 / size : 0};
}

// a (rows, columns), rows >= columns >= 1 -> d_1, e_1, d_2, ..., d_n: the diagonal and the upper diagonal of U^T A V,
// which reflections from the left and from the right leave. a is lost.
std::vector<double> bidiagonal(std::vector<double>& a, int64_t rows, int64_t columns) {
  const auto row = [&](int64_t i, int64_t from) {
    return Row(a).subspan(static_cast<size_t>(i * columns + from), static_cast<size_t>(columns - from));
  };
  std::vector<double> result, v, sum;
  for (int64_t k = 0; k < columns; ++k) {
    v.clear();
    for (int64_t i = k; i < rows; ++i) v.push_back(row(i, k)[0]);
    const auto [d, left] = reflection(v);
    result.push_back(d);
    if (k + 1 == columns) break;
    sum.assign(static_cast<size_t>(columns - k - 1), 0);
    for (int64_t i = k; i < rows; ++i) add(sum, v[static_cast<size_t>(i - k)], row(i, k + 1));
    for (int64_t i = k; i < rows; ++i) add(row(i, k + 1), -left * v[static_cast<size_t>(i - k)], sum);
    const Row last = row(k, k + 1);
    const auto [e, right] = reflection(last);
    result.push_back(e);
    for (int64_t i = k + 1; i < rows; ++i) add(row(i, k + 1), -right * dot(row(i, k + 1), last), last);
  }
  return result;
}

// The n singular values of such a matrix, descending. Its 2 n - 1 numbers beside a diagonal of zeros make a symmetric
// matrix with the eigenvalues +-s, and the signs of its pivots count those below x (Golub and Kahan, 1965): bisection.
std::vector<double> bisect(std::vector<double> b) {
  constexpr size_t lanes = 8;  // values that are found at a time
  double largest = 0;
  for (double& x : b) largest = std::max(largest, std::fabs(x)), x = std::max(x * x, 1e-290);  // no 0 / 0 below
  const size_t n = (b.size() + 1) / 2;
  std::vector<double> s(n);
  for (size_t first = 0; first < n; first += lanes) {
    std::array<double, lanes> low{}, high, x, pivot, below;
    high.fill(2 * largest);
    for (int step = 0; step < 60; ++step) {
      for (size_t l = 0; l < lanes; ++l) x[l] = (low[l] + high[l]) / 2, pivot[l] = -x[l], below[l] = 1;
      for (const double square : b)
        for (size_t l = 0; l < lanes; ++l) {
          pivot[l] = -x[l] - square / pivot[l];
          below[l] += pivot[l] < 0 ? 1.0 : 0.0;
        }
      for (size_t l = 0; l < lanes; ++l)
        (below[l] > static_cast<double>(n + first + l) ? high[l] : low[l]) = x[l];  // of the ascending values
    }
    for (size_t l = 0; l < lanes && first + l < n; ++l) s[n - 1 - first - l] = low[l];
  }
  return s;
}

// a (rows, columns) -> L (rows, r) of A = L Q with orthonormal rows of Q, r = min(rows, columns).
std::vector<double> lower_factor(std::span<const double> matrix, int64_t rows, int64_t columns) {
  std::vector<double> a(matrix.begin(), matrix.end()), lower;
  const int64_t r = std::min(rows, columns);
  const auto row = [&](int64_t i, int64_t from) {
    return Row(a).subspan(static_cast<size_t>(i * columns + from), static_cast<size_t>(columns - from));
  };
  for (int64_t k = 0; k < rows; ++k) {
    for (int64_t j = 0; j < std::min(k, r); ++j) lower.push_back(row(k, j)[0]);
    if (k >= r) continue;
    const auto [first, factor] = reflection(row(k, k));
    for (int64_t i = k + 1; i < rows; ++i) add(row(i, k), -factor * dot(row(i, k), row(k, k)), row(k, k));
    lower.push_back(first);
    lower.resize(static_cast<size_t>((k + 1) * r));
  }
  return lower;
}

}  // namespace

double dot(std::span<const double> a, std::span<const double> b) {
  std::array<double, 4> sums{};
  size_t i = 0;
  for (; i + 4 <= a.size(); i += 4)
    for (size_t l = 0; l < 4; ++l) sums[l] += a[i + l] * b[i + l];
  for (; i < a.size(); ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

std::vector<double> singular_values(std::span<const double> matrix, int64_t rows, int64_t columns) {
  check(std::ssize(matrix) == rows * columns, "singular_values",
        [&] { return str(matrix.size(), " elements are no matrix of ", rows, " x ", columns); });
  double largest = 0;
  for (const double x : matrix) {
    check(std::isfinite(x), ErrorKind::numerical, [&] {
      return "singular values: expected finite elements, found " + std::to_string(x) + "; check the model's weights";
    });
    largest = std::max(largest, std::fabs(x));
  }
  if (!(largest > 0)) return std::vector<double>(static_cast<size_t>(std::min(rows, columns)));
  std::vector<double> a;
  const bool tall = rows >= columns;
  for (int64_t i = 0; i < std::max(rows, columns); ++i)
    for (int64_t j = 0; j < std::min(rows, columns); ++j)
      a.push_back(matrix[static_cast<size_t>(tall ? i * columns + j : j * columns + i)] / largest);
  std::vector<double> s = bisect(bidiagonal(a, std::max(rows, columns), std::min(rows, columns)));
  for (double& x : s) x *= largest;
  return s;
}

std::vector<double> product_singular_values(std::span<const double> a, std::span<const double> b, int64_t columns) {
  const int64_t rows = std::ssize(a) / columns, r = std::min(rows, columns);
  const std::vector<double> left = lower_factor(a, rows, columns), right = lower_factor(b, rows, columns);
  std::vector<double> product(static_cast<size_t>(r * r));  // L_A^T L_B
  for (int64_t k = 0; k < rows; ++k)
    for (int64_t i = 0; i < r; ++i)
      add(Row(product).subspan(static_cast<size_t>(i * r), static_cast<size_t>(r)),
          left[static_cast<size_t>(k * r + i)],
          std::span(right).subspan(static_cast<size_t>(k * r), static_cast<size_t>(r)));
  return singular_values(product, r, r);
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

}  // namespace braid::models
