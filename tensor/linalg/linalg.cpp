// Factorisations by LAPACK. Matrices of a call are computed in parallel, each by one thread.
#include "braid/tensor/kernels/linalg.h"

#include <cmath>
#include <limits>

#include "braid/tensor/linalg/lapack.h"
#include "braid/tensor/linalg/results.h"
#include "braid/tensor/parallel.h"

namespace braid::cpu {

namespace {

using namespace linalg;

// Calls f<T>(index) for each matrix of a; cost: operations of one.
template <class F>
void each_matrix(const char* op, In a, double cost, F&& f) {
  int64_t count = 1;
  for (int axis = 0; axis < a.rank() - 2; ++axis) count *= a.dim(axis);
  const auto grain = grain_for(static_cast<int64_t>(std::fmin(cost, 1e9)));
  const auto all = [&]<class T>() {
    parallel_for(count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) f.template operator()<T>(i);
    });
  };
  if (a.dtype() == DType::f64)
    all.template operator()<double>();
  else if (a.dtype() == DType::f32)
    all.template operator()<float>();
  else
    fail(op, str("needs f32 or f64, got ", a.dtype(), "; cast it"));
}

double cube(int64_t n) { return static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n); }

int size(const char* op, int64_t n) {
  check(n <= std::numeric_limits<int>::max(), op, [&] { return str("needs sizes below 2^31, got ", n); });
  return static_cast<int>(n);
}

int64_t area(In x) { return x.dim(-2) * x.dim(-1); }
template <class T>
const T* matrix(In x, int64_t i) {
  return x.data<T>() + i * area(x);
}
template <class T>
T* matrix(Out x, int64_t i) {
  return x.mutable_data<T>() + i * area(x);
}

template <class T>
std::vector<T> copy(In x, int64_t i) {
  return {matrix<T>(x, i), matrix<T>(x, i) + area(x)};
}

// to (n, m) = from (m, n) transposed
template <class T>
void transpose(const T* from, int64_t m, int64_t n, T* to) {
  for (int64_t r = 0; r < m; ++r)
    for (int64_t c = 0; c < n; ++c) to[c * m + r] = from[r * n + c];
}

template <class T>
bool finite(const std::vector<T>& a) {
  return std::all_of(a.begin(), a.end(), [](T x) { return std::isfinite(x); });
}

// The factors of a row-major matrix's transpose.
template <class T>
struct Factors {
  std::vector<T> lu;
  std::vector<int> pivots;
  int info;

  Factors(In a, int64_t i, int n) : lu(copy<T>(a, i)), pivots(static_cast<size_t>(n)) {
    info = getrf(n, lu.data(), pivots.data());
  }
};

void cholesky(In a, Out l) {
  constexpr const char* op = "cholesky";
  if (a.numel() == 0) return;
  const int n = size(op, a.dim(-1));
  each_matrix(op, a, cube(n) / 3, [&]<class T>(int64_t i) {
    std::vector<T> factor = copy<T>(a, i);
    bool good = potrf('U', n, factor.data()) == 0;
    T* lower = matrix<T>(l, i);
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t c = 0; c < n; ++c) {
        const T x = c > r ? T(0) : factor[static_cast<size_t>(r * n + c)];
        lower[r * n + c] = x;
        good = good && std::isfinite(x);
      }
    }
    check_definite(op, i, good);
  });
}

void solve(In a, In b, Out x) {
  constexpr const char* op = "solve";
  if (b.numel() == 0) return;
  const int n = size(op, a.dim(-1)), columns = size(op, b.dim(-1));
  each_matrix(op, a, cube(n), [&]<class T>(int64_t i) {
    const Factors<T> factors(a, i, n);
    if (factors.info > 0) fail_singular(op, i, factors.info - 1);
    std::vector<T> right(static_cast<size_t>(area(b)));
    transpose(matrix<T>(b, i), n, columns, right.data());
    getrs('T', n, columns, factors.lu.data(), factors.pivots.data(), right.data());
    transpose(right.data(), columns, n, matrix<T>(x, i));
  });
}

void solve_triangular(In a, In b, bool upper, Out x) {
  constexpr const char* op = "solve_triangular";
  if (b.numel() == 0) return;
  const int n = size(op, a.dim(-1)), columns = size(op, b.dim(-1));
  each_matrix(op, a, static_cast<double>(n) * n * columns, [&]<class T>(int64_t i) {
    std::vector<T> right(static_cast<size_t>(area(b)));
    transpose(matrix<T>(b, i), n, columns, right.data());
    const int info = trtrs(upper ? 'L' : 'U', 'T', n, columns, matrix<T>(a, i), right.data());
    if (info > 0) fail_singular(op, i, info - 1);
    transpose(right.data(), columns, n, matrix<T>(x, i));
  });
}

void inverse(In a, Out y) {
  constexpr const char* op = "inverse";
  if (a.numel() == 0) return;
  const int n = size(op, a.dim(-1));
  each_matrix(op, a, 3 * cube(n), [&]<class T>(int64_t i) {
    Factors<T> factors(a, i, n);
    if (factors.info > 0) fail_singular(op, i, factors.info - 1);
    getri(n, factors.lu.data(), factors.pivots.data());
    std::copy(factors.lu.begin(), factors.lu.end(), matrix<T>(y, i));
  });
}

void slogdet(In a, Out sign, Out log) {
  constexpr const char* op = "slogdet";
  if (a.dim(-1) == 0) {  // the product of nothing
    sign.fill(1);
    log.fill(0);
    return;
  }
  const int n = size(op, a.dim(-1));
  each_matrix(op, a, cube(n), [&]<class T>(int64_t i) {
    const Factors<T> factors(a, i, n);
    const SignAndLog<T> found = sign_and_log(factors.lu.data(), n + 1, factors.pivots.data(), n);
    sign.mutable_data<T>()[i] = found.sign;
    log.mutable_data<T>()[i] = found.log;
  });
}

void qr(In a, Out q, Out r) {
  constexpr const char* op = "qr";
  if (q.numel() == 0) {
    r.fill(0);
    return;
  }
  const int m = size(op, a.dim(-2)), n = size(op, a.dim(-1)), k = std::min(m, n);
  each_matrix(op, a, 3 * cube(std::max(m, n)), [&]<class T>(int64_t i) {
    std::vector<T> columns(static_cast<size_t>(area(a))), tau(static_cast<size_t>(k));
    transpose(matrix<T>(a, i), m, n, columns.data());
    geqrf(m, n, columns.data(), tau.data());
    T* upper = matrix<T>(r, i);
    for (int64_t row = 0; row < k; ++row)
      for (int64_t c = 0; c < n; ++c) upper[row * n + c] = c < row ? T(0) : columns[static_cast<size_t>(c * m + row)];
    orgqr(m, k, columns.data(), tau.data());
    transpose(columns.data(), k, m, matrix<T>(q, i));
  });
}

void eigh(In a, Out w, Out v) {
  constexpr const char* op = "eigh";
  if (a.numel() == 0) return;
  const int n = size(op, a.dim(-1));
  each_matrix(op, a, 20 * cube(n), [&]<class T>(int64_t i) {
    std::vector<T> columns = copy<T>(a, i);
    check_finite(op, i, finite(columns));
    const int info = syevd('U', n, columns.data(), w.mutable_data<T>() + i * n);
    check_converged(op, i, info);
    transpose(columns.data(), n, n, matrix<T>(v, i));
  });
}

// LAPACK sees the transpose, a^T = vh^T diag(s) u^T, whose factors lie in memory as u and vh do.
void svd(In a, Out u, Out s, Out vh) {
  constexpr const char* op = "svd";
  if (a.numel() == 0) return;
  const int m = size(op, a.dim(-2)), n = size(op, a.dim(-1)), k = std::min(m, n);
  each_matrix(op, a, 20 * cube(std::max(m, n)), [&]<class T>(int64_t i) {
    std::vector<T> transposed = copy<T>(a, i);
    check_finite(op, i, finite(transposed));
    const int info = gesdd(n, m, transposed.data(), s.mutable_data<T>() + i * k, matrix<T>(vh, i), matrix<T>(u, i));
    check_converged(op, i, info);
  });
}

}  // namespace

bool has_lapack() { return true; }

constinit const LinalgKernels linalg_kernels{.cholesky = cholesky,
                                             .solve = solve,
                                             .solve_triangular = solve_triangular,
                                             .inverse = inverse,
                                             .slogdet = slogdet,
                                             .qr = qr,
                                             .eigh = eigh,
                                             .svd = svd};

}  // namespace braid::cpu
