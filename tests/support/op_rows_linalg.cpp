// Rows of autograd/linalg.h and autograd/fft.h. References: Gauss' elimination, sums over all permutations, and the
// sums of the definition.
#include <cmath>
#include <functional>
#include <numbers>

#include "braid/tensor/kernels/linalg.h"
#include "tests/support/op_table.h"

namespace braid::test {

namespace {

using Values = std::vector<double>;

// x x^T + 3, symmetric and positive definite, of x (..., n, n).
Tensor definite(const Tensor& x) {
  return add(matmul(x, transpose(x)), scale(eye(x.dim(-1), x.dtype(), x.device()), 3));
}
Array definite(const Array& x) {
  const auto n = static_cast<size_t>(x.shape[-1]);
  Array y{x.shape, Values(x.values.size())};
  for (size_t at = 0; at < x.values.size(); at += n * n)
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) {
        double sum = i == j ? 3 : 0;
        for (size_t k = 0; k < n; ++k) sum += x.values[at + i * n + k] * x.values[at + j * n + k];
        y.values[at + i * n + j] = sum;
      }
  return y;
}

// a^-1 b of one matrix each, by elimination with the largest pivot.
Values solved(Values a, Values b, size_t n) {
  const size_t columns = b.size() / n;
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k; i < n; ++i)
      if (std::fabs(a[i * n + k]) > std::fabs(a[pivot * n + k])) pivot = i;
    for (size_t j = 0; j < n; ++j) std::swap(a[k * n + j], a[pivot * n + j]);
    for (size_t j = 0; j < columns; ++j) std::swap(b[k * columns + j], b[pivot * columns + j]);
    for (size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double f = a[i * n + k] / a[k * n + k];
      for (size_t j = 0; j < n; ++j) a[i * n + j] -= f * a[k * n + j];
      for (size_t j = 0; j < columns; ++j) b[i * columns + j] -= f * b[k * columns + j];
    }
  }
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < columns; ++j) b[i * columns + j] /= a[i * n + i];
  return b;
}

// f(matrix of a, matrix of b) for each pair, appended.
template <class F>
Array each_pair(const Array& a, const Array& b, F&& f) {
  const auto size = static_cast<size_t>(a.shape[-1] * a.shape[-2]),
             other = static_cast<size_t>(b.shape[-1] * b.shape[-2]);
  Array y{b.shape, {}};
  for (size_t i = 0; i * size < a.values.size(); ++i) {
    const auto at = [](const Values& x, size_t begin, size_t n) {
      return Values(x.begin() + static_cast<std::ptrdiff_t>(begin), x.begin() + static_cast<std::ptrdiff_t>(begin + n));
    };
    const Values found = f(at(a.values, i * size, size), at(b.values, i * other, other));
    y.values.insert(y.values.end(), found.begin(), found.end());
  }
  return y;
}

Values identity(size_t n) {
  Values x(n * n, 0);
  for (size_t i = 0; i < n; ++i) x[i * n + i] = 1;
  return x;
}

// By Laplace's expansion along the first row.
double determinant(const Values& a, size_t n) {
  if (n == 0) return 1;
  double sum = 0;
  for (size_t k = 0; k < n; ++k) {
    Values minor;
    for (size_t i = 1; i < n; ++i)
      for (size_t j = 0; j < n; ++j)
        if (j != k) minor.push_back(a[i * n + j]);
    sum += (k % 2 == 0 ? 1 : -1) * a[k] * determinant(minor, n - 1);
  }
  return sum;
}

Array determinants(const Array& a) {
  const auto n = static_cast<size_t>(a.shape[-1]);
  Array y;
  for (int axis = 0; axis < a.shape.rank() - 2; ++axis) y.shape.push_back(a.shape[axis]);
  for (size_t at = 0; at < a.values.size(); at += n * n)
    y.values.push_back(determinant(Values(a.values.begin() + static_cast<std::ptrdiff_t>(at),
                                          a.values.begin() + static_cast<std::ptrdiff_t>(at + n * n)),
                                   n));
  return y;
}

Array cholesky_of(const Array& a) {
  return each_pair(a, a, [](const Values& x, const Values&) {
    const auto n = static_cast<size_t>(std::lround(std::sqrt(static_cast<double>(x.size()))));
    Values l(n * n, 0);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j <= i; ++j) {
        double sum = x[i * n + j];
        for (size_t k = 0; k < j; ++k) sum -= l[i * n + k] * l[j * n + k];
        l[i * n + j] = i == j ? std::sqrt(sum) : sum / l[j * n + j];
      }
    return l;
  });
}

OpRow row(const char* name, std::function<Tensor(const std::vector<Tensor>&)> op,
          std::function<Array(const std::vector<Array>&)> reference, std::vector<std::vector<Shape>> cases) {
  return {.name = name,
          .op = std::move(op),
          .reference = std::move(reference),
          .cases = std::move(cases),
          .f32_tolerance = 2e-5,
          .gradient_tolerance = 1e-6,
          .in_16_bit = false};
}

const std::vector<std::vector<Shape>> kSquares{{{1, 1}}, {{4, 4}}, {{2, 3, 3}}, {{2, 1, 2, 2}}};

// 3, 4, 5 ... added to the diagonal of x (..., m, n): of full rank, also where rows of x are equal.
Array shift_of(const Shape& shape) {
  Array y{shape, Values(static_cast<size_t>(numel(shape)))};
  const int64_t m = shape[-2], n = shape[-1];
  for (int64_t i = 0; i < numel(shape); ++i)
    if (i / n % m == i % n) y.values[static_cast<size_t>(i)] = static_cast<double>(3 + i % n);
  return y;
}
Tensor shifted(const Tensor& x) {
  return add(x, from_vector(shift_of(x.shape()).values, x.shape()).to(x.dtype()).to(x.device()));
}

std::vector<OpRow> system_rows() {
  const auto solve_of = [](const Array& a, const Array& b) {
    return each_pair(a, b,
                     [&](const Values& x, const Values& y) { return solved(x, y, static_cast<size_t>(a.shape[-1])); });
  };
  const auto inverse_of = [](const Array& a) {
    return each_pair(a, a, [&](const Values& x, const Values&) {
      const auto n = static_cast<size_t>(a.shape[-1]);
      return solved(x, identity(n), n);
    });
  };
  std::vector<OpRow> table;
  table.push_back(row(
      "solve", [](const auto& in) { return solve(definite(in[0]), in[1]); },
      [=](const auto& in) { return solve_of(definite(in[0]), in[1]); },
      {{{1, 1}, {1, 2}}, {{4, 4}, {4, 3}}, {{2, 3, 3}, {2, 3, 1}}}));
  // The triangle that is not read holds other numbers.
  table.push_back(row(
      "solve_triangular", [](const auto& in) { return solve_triangular(shifted(in[0]), in[1], false); },
      [=](const auto& in) {
        Array a = zip(in[0], shift_of(in[0].shape), std::plus<>());
        const int64_t n = a.shape[-1];
        for (int64_t i = 0; i < numel(a.shape); ++i)
          if (i % n > i / n % n) a.values[static_cast<size_t>(i)] = 0;
        return solve_of(a, in[1]);
      },
      {{{1, 1}, {1, 2}}, {{4, 4}, {4, 3}}, {{2, 3, 3}, {2, 3, 1}}}));
  table.push_back(row(
      "matrix_norm", [](const auto& in) { return matrix_norm(in[0]); },
      [](const auto& in) {
        const Shape& s = in[0].shape;
        const auto size = static_cast<size_t>(s[-1] * s[-2]);
        Array y;
        for (int axis = 0; axis < s.rank() - 2; ++axis) y.shape.push_back(s[axis]);
        for (size_t at = 0; at < in[0].values.size(); at += size) {
          double sum = 0;
          for (size_t i = at; i < at + size; ++i) sum += in[0].values[i] * in[0].values[i];
          y.values.push_back(std::sqrt(sum));
        }
        return y;
      },
      {{{1, 1}}, {{3, 2}}, {{2, 2, 3}}}));
  table.push_back(row(
      "inverse", [](const auto& in) { return inverse(definite(in[0])); },
      [=](const auto& in) { return inverse_of(definite(in[0])); }, kSquares));
  table.push_back(row(
      "pinv", [](const auto& in) { return pinv(definite(in[0])); },
      [=](const auto& in) { return inverse_of(definite(in[0])); }, {{{1, 1}}, {{2, 2, 2}}, {{3, 3}}}));
  table.push_back(row(
      "lstsq", [](const auto& in) { return lstsq(definite(in[0]), in[1]); },
      [=](const auto& in) { return solve_of(definite(in[0]), in[1]); }, {{{3, 3}, {3, 2}}, {{2, 2, 2}, {2, 2, 1}}}));
  table.push_back(row(
      "cholesky", [](const auto& in) { return cholesky(definite(in[0])); },
      [](const auto& in) { return cholesky_of(definite(in[0])); }, kSquares));
  table.push_back(row(
      "det", [](const auto& in) { return det(definite(in[0])); },
      [](const auto& in) { return determinants(definite(in[0])); }, kSquares));
  table.push_back(row(
      "slogdet", [](const auto& in) { return slogdet(definite(in[0])).log; },
      [](const auto& in) { return map(determinants(definite(in[0])), [](double d) { return std::log(d); }); },
      kSquares));
  return table;
}

// Factors are determined up to signs: rows check what does not depend on them, here a itself.
std::vector<OpRow> factor_rows() {
  const auto itself = [](const auto& in) { return zip(in[0], shift_of(in[0].shape), std::plus<>()); };
  const std::vector<std::vector<Shape>> shapes{{{3, 3}}, {{4, 2}}, {{2, 2, 3}}, {{1, 1}}};
  std::vector<OpRow> table;
  table.push_back(row(
      "qr",
      [](const auto& in) {
        const QAndR f = qr(shifted(in[0]));
        return matmul(f.q, f.r);
      },
      itself, shapes));
  table.push_back(row(
      "svd",
      [](const auto& in) {
        const Svd f = svd(shifted(in[0]));
        return matmul(mul(f.u, unsqueeze(f.s, -2)), f.vh);
      },
      itself, shapes));
  table.push_back(row(
      "eigh",
      [](const auto& in) {
        const EigenPairs e = eigh(definite(in[0]));
        return matmul(mul(e.vectors, unsqueeze(e.values, -2)), transpose(e.vectors));
      },
      [](const auto& in) { return definite(in[0]); }, kSquares));
  // log det is the sum of the logarithms of the eigenvalues, and of twice the singular values' of the factor.
  const auto log_det = [](const auto& in) {
    return map(determinants(definite(in[0])), [](double d) { return std::log(d); });
  };
  table.push_back(row(
      "eigvalsh", [](const auto& in) { return sum(log(eigvalsh(definite(in[0]))), {-1}); }, log_det, kSquares));
  table.push_back(row(
      "svdvals", [](const auto& in) { return sum(log(svdvals(definite(in[0]))), {-1}); }, log_det, kSquares));
  return table;
}

// x (..., n, 2) -> its transform along n, by the sum of the definition.
Array dft(const Array& x, bool backwards) {
  const int64_t n = x.shape[-2];
  Array y{x.shape, Values(x.values.size())};
  for (size_t at = 0; at < x.values.size(); at += static_cast<size_t>(2 * n))
    for (int64_t k = 0; k < n; ++k) {
      double re = 0, im = 0;
      for (int64_t j = 0; j < n; ++j) {
        const double angle =
            (backwards ? 2 : -2) * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
        const double a = x.values[at + static_cast<size_t>(2 * j)], b = x.values[at + static_cast<size_t>(2 * j + 1)];
        re += a * std::cos(angle) - b * std::sin(angle);
        im += a * std::sin(angle) + b * std::cos(angle);
      }
      const double f = backwards ? 1 / static_cast<double>(n) : 1;
      y.values[at + static_cast<size_t>(2 * k)] = re * f;
      y.values[at + static_cast<size_t>(2 * k + 1)] = im * f;
    }
  return y;
}

// The first n/2 + 1 of the transform of a real x (..., n).
Array real_dft(const Array& x) {
  const int64_t n = x.shape[-1], half = n / 2 + 1;
  Array pairs{x.shape, {}};
  pairs.shape.push_back(2);
  for (const double value : x.values) {
    pairs.values.push_back(value);
    pairs.values.push_back(0);
  }
  const Array full = dft(pairs, false);
  Array y{full.shape, {}};
  y.shape[-2] = half;
  for (size_t at = 0; at < full.values.size(); at += static_cast<size_t>(2 * n))
    y.values.insert(y.values.end(), full.values.begin() + static_cast<std::ptrdiff_t>(at),
                    full.values.begin() + static_cast<std::ptrdiff_t>(at) + 2 * half);
  return y;
}

std::vector<OpRow> fourier_rows() {
  const std::vector<std::vector<Shape>> shapes{{{1, 2}}, {{2, 2}}, {{3, 12, 2}}, {{2, 17, 2}}, {{19, 2}}, {{60, 2}}};
  std::vector<OpRow> table;
  table.push_back(row(
      "fft", [](const auto& in) { return fft(in[0]); }, [](const auto& in) { return dft(in[0], false); }, shapes));
  table.push_back(row(
      "ifft", [](const auto& in) { return ifft(in[0]); }, [](const auto& in) { return dft(in[0], true); }, shapes));
  table.push_back(row(
      "rfft", [](const auto& in) { return rfft(in[0]); }, [](const auto& in) { return real_dft(in[0]); },
      {{{1}}, {{2}}, {{3, 12}}, {{2, 17}}, {{2, 3, 5}}}));
  table.push_back(row(
      "irfft", [](const auto& in) { return irfft(rfft(in[0]), in[0].dim(-1)); }, [](const auto& in) { return in[0]; },
      {{{1}}, {{2}}, {{3, 12}}, {{2, 17}}, {{2, 3, 5}}}));
  const auto exchanged = [](const Array& x) {  // (m, n, 2) -> (n, m, 2)
    Array y{{x.shape[1], x.shape[0], 2}, {}};
    for (int64_t j = 0; j < x.shape[1]; ++j)
      for (int64_t i = 0; i < x.shape[0]; ++i)
        for (int64_t e = 0; e < 2; ++e) y.values.push_back(x.values[static_cast<size_t>((i * x.shape[1] + j) * 2 + e)]);
    return y;
  };
  for (const bool backwards : {false, true})
    table.push_back(row(
        backwards ? "ifftn" : "fftn",
        [=](const auto& in) {
          return backwards ? ifftn(in[0], {0, 1}) : fftn(in[0], {0, 1});
        },
        [=](const auto& in) { return exchanged(dft(exchanged(dft(in[0], backwards)), backwards)); },
        {{{3, 4, 2}}, {{1, 5, 2}}}));
  // Element i of y is element (i + by) mod n of x.
  const auto moved = [](const char* name, Tensor (*op)(const Tensor&, int), bool more) {
    return row(
        name, [op](const auto& in) { return op(in[0], -1); },
        [more](const auto& in) {
          return rows(in[0], [more](const double* x, double* y, int64_t n) {
            for (int64_t i = 0; i < n; ++i) y[i] = x[(i + (n + more) / 2) % n];
          });
        },
        {{{5}}, {{2, 4}}, {{3, 1}}});
  };
  table.push_back(moved("fftshift", fftshift, true));
  table.push_back(moved("ifftshift", ifftshift, false));
  const auto parts = [](const Array& x, size_t first) {
    Array y;
    for (int axis = 0; axis < x.shape.rank() - 1; ++axis) y.shape.push_back(x.shape[axis]);
    for (size_t i = first; i < x.values.size(); i += 2) y.values.push_back(x.values[i]);
    return y;
  };
  table.push_back(row(
      "real_part", [](const auto& in) { return real_part(in[0]); }, [=](const auto& in) { return parts(in[0], 0); },
      {{{5, 2}}, {{2}}}));
  table.push_back(row(
      "imag_part", [](const auto& in) { return imag_part(in[0]); }, [=](const auto& in) { return parts(in[0], 1); },
      {{{5, 2}}, {{2}}}));
  const auto joined = [](const Array& re, const Array& im) {
    Array y{re.shape, {}};
    y.shape.push_back(2);
    for (size_t i = 0; i < re.values.size(); ++i) y.values.insert(y.values.end(), {re.values[i], im.values[i]});
    return y;
  };
  table.push_back(row(
      "to_complex", [](const auto& in) { return to_complex(in[0], in[1]); },
      [=](const auto& in) { return joined(in[0], in[1]); }, {{{3, 2}, {3, 2}}, {{}, {}}}));
  table.push_back(row(
      "complex_mul", [](const auto& in) { return complex_mul(in[0], in[1]); },
      [=](const auto& in) {
        const Array a = parts(in[0], 0), b = parts(in[0], 1), c = parts(in[1], 0), d = parts(in[1], 1);
        const auto product = [](double x, double y) { return x * y; };
        return joined(zip(zip(a, c, product), zip(b, d, product), std::minus<>()),
                      zip(zip(a, d, product), zip(b, c, product), std::plus<>()));
      },
      {{{5, 2}, {5, 2}}, {{2}, {2}}}));
  table.push_back(row(
      "complex_abs", [](const auto& in) { return complex_abs(complex_mul(in[0], in[1])); },
      [](const auto& in) {
        Array y;
        for (int axis = 0; axis < in[0].shape.rank() - 1; ++axis) y.shape.push_back(in[0].shape[axis]);
        for (size_t i = 0; i < in[0].values.size(); i += 2)
          y.values.push_back(std::hypot(in[0].values[i], in[0].values[i + 1]) *
                             std::hypot(in[1].values[i], in[1].values[i + 1]));
        return y;
      },
      {{{5, 2}, {5, 2}}, {{2}, {2}}}));
  return table;
}

}  // namespace

std::vector<OpRow> linalg_rows() {
  std::vector<OpRow> table = fourier_rows();
  if (!cpu::has_lapack()) return table;
  for (auto family : {system_rows, factor_rows})
    for (OpRow& r : family()) table.push_back(std::move(r));
  return table;
}

}  // namespace braid::test
