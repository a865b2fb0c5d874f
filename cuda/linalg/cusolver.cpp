// Factorisations by cuSOLVER, one matrix after the other in the order of the stream; each call waits once, for the
// results' state. cuSOLVER stores columns one after the other, as LAPACK does: a row-major matrix is its transpose
// there, so that the calls are those of tensor/linalg/linalg.cpp.
#include <cusolverDn.h>

#include <array>
#include <mutex>

#include "braid/cuda/runtime/check.h"
#include "braid/cuda/runtime/graph.h"
#include "braid/cuda/runtime/runtime.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/linalg/results.h"

namespace braid::cuda {

namespace {

using namespace linalg;

void check(cusolverStatus_t status, const std::source_location& where = std::source_location::current()) {
  if (status != CUSOLVER_STATUS_SUCCESS) failed_call(str("cuSOLVER: status ", static_cast<int>(status)), where);
}

struct Solver {  // of one GPU
  std::mutex mutex;
  Handle<cusolverDnHandle_t, cusolverDnDestroy> handle;
  Handle<cusolverDnParams_t, cusolverDnDestroyParams> parameters;
};

Solver& solver() {
  static auto* of = new std::array<Solver, 64>;  // never destroyed: the driver may be gone by then
  Solver& s = (*of)[static_cast<size_t>(current_device())];
  const std::lock_guard lock(s.mutex);
  if (!s.handle.get()) {
    cusolverDnHandle_t handle = nullptr;
    cusolverDnParams_t parameters = nullptr;
    check(cusolverDnCreateParams(&parameters));
    s.parameters = Handle<cusolverDnParams_t, cusolverDnDestroyParams>(parameters);
    check(cusolverDnCreate(&handle));
    s.handle = Handle<cusolverDnHandle_t, cusolverDnDestroy>(handle);
  }
  return s;
}

struct Bytes {  // of the workspace of a call
  size_t device = 0, host = 0;
};

// A call for one matrix: what every routine of cuSOLVER takes.
struct Call {
  cusolverDnHandle_t handle;
  cusolverDnParams_t parameters;
  void* device = nullptr;
  void* host = nullptr;
  int* info = nullptr;
};

int64_t area(In x) { return x.dim(-2) * x.dim(-1); }
int64_t count_of(In a) { return a.numel() / area(a); }
void* at(Out x, int64_t elements) { return static_cast<std::byte*>(x.mutable_raw()) + elements * size_of(x.dtype()); }
const void* at(In x, int64_t elements) {
  return static_cast<const std::byte*>(x.raw()) + elements * size_of(x.dtype());
}
cudaDataType type_of(In x) { return x.dtype() == DType::f64 ? CUDA_R_64F : CUDA_R_32F; }

// Makes the calls for all matrices of a and returns what each reported: 0, or what failed. bytes(call): the workspace
// of one; run(call, bytes, i): enqueues the one of matrix i.
template <class Wanted, class Run>
std::vector<int32_t> each_matrix(In a, Wanted&& wanted, Run&& run) {
  check_not_capturing("a matrix was factorised");
  Solver& s = solver();
  const std::lock_guard lock(s.mutex);
  check(cusolverDnSetStream(s.handle.get(), current_stream()));
  Call call{s.handle.get(), s.parameters.get()};
  const int64_t count = count_of(a);
  const Bytes bytes = wanted(call);
  Tensor work = empty({static_cast<int64_t>(bytes.device) + 1}, DType::u8, a.device());
  Tensor info = zeros({count}, DType::i32, a.device());
  std::vector<std::byte> host((bytes.host + 1) * static_cast<size_t>(count));  // read until the stream is done
  call.device = work.mutable_raw();
  for (int64_t i = 0; i < count; ++i) {
    call.host = host.data() + static_cast<size_t>(i) * bytes.host;
    call.info = static_cast<int*>(at(info, i));
    check(run(call, bytes, i));
  }
  return info.to_vector<int32_t>();
}

Bytes no_bytes(const Call&) { return {}; }

// x = 0 above the diagonal, or below it.
void clear_triangle(Out x, bool above) {
  const Tensor places = arange(std::max(x.dim(-2), x.dim(-1)), DType::i64, x.device());
  const Shape shape{x.dim(-2), x.dim(-1)};
  const Tensor row = places.sliced(0, 0, x.dim(-2)).unsqueezed(1).expanded(shape),
               column = places.sliced(0, 0, x.dim(-1)).expanded(shape);
  Tensor mask = empty(shape, DType::u8, x.device());
  backend(x.device()).pointwise.compare(CompareOp::lt, above ? row : column, above ? column : row, mask);
  backend(x.device()).pointwise.masked_fill(x, mask.expanded(x.shape()), 0, x);
}

// The diagonals of x (..., n, n), matrix by matrix.
std::vector<double> diagonals(In x) {
  const int64_t n = x.dim(-1);
  return x.view({count_of(x), n}, {n * n, n + 1}, 0).to_vector<double>();
}

void check_finite(const char* op, In a) {
  const Tensor each = a.reshaped({count_of(a), area(a)});
  Tensor most = empty({count_of(a), 1}, a.dtype(), a.device()), least = empty_like(most);
  backend(a.device()).reduce.axes(ReduceOp::max, each, most);
  backend(a.device()).reduce.axes(ReduceOp::min, each, least);
  const std::vector<double> high = most.to_vector<double>(), low = least.to_vector<double>();
  for (size_t i = 0; i < high.size(); ++i)
    linalg::check_finite(op, static_cast<int64_t>(i), std::isfinite(high[i]) && std::isfinite(low[i]));
}

// The factors of each row-major matrix's transpose.
struct Factors {
  Tensor lu, pivots;  // pivots (count, n), i64
  std::vector<int32_t> info;

  explicit Factors(In a)
      : lu(a.clone()),
        pivots(empty({count_of(a), a.dim(-1)}, DType::i64, a.device())),
        info(each_matrix(
            a,
            [&](const Call& c) {
              Bytes bytes;
              check(cusolverDnXgetrf_bufferSize(c.handle, c.parameters, n(), n(), type_of(lu), lu.raw(), n(),
                                                type_of(lu), &bytes.device, &bytes.host));
              return bytes;
            },
            [&](const Call& c, const Bytes& b, int64_t i) {
              return cusolverDnXgetrf(c.handle, c.parameters, n(), n(), type_of(lu), at(lu, i * n() * n()), n(),
                                      static_cast<int64_t*>(at(pivots, i * n())), type_of(lu), c.device, b.device,
                                      c.host, b.host, c.info);
            })) {}

  int64_t n() const { return lu.dim(-1); }
  void check_regular(const char* op) const {
    for (size_t i = 0; i < info.size(); ++i)
      if (info[i] > 0) fail_singular(op, static_cast<int64_t>(i), info[i] - 1);
  }
};

// right (..., r, n), whose memory is columns (n, r): each matrix is replaced by the solution of op(P^-1 l u) x = right.
void solve_factored(In lu, In pivots, cublasOperation_t op, Out right) {
  const int64_t n = right.dim(-1), columns = right.dim(-2);
  each_matrix(right, no_bytes, [&](const Call& c, const Bytes&, int64_t i) {
    return cusolverDnXgetrs(c.handle, c.parameters, op, n, columns, type_of(lu), at(lu, i * n * n), n,
                            static_cast<const int64_t*>(at(pivots, i * n)), type_of(right), at(right, i * area(right)),
                            n, c.info);
  });
}

void cholesky(In a, Out l) {
  if (a.numel() == 0) return;
  const int64_t n = a.dim(-1);
  l.copy_(a);
  const std::vector<int32_t> info = each_matrix(
      a,
      [&](const Call& c) {
        Bytes bytes;
        check(cusolverDnXpotrf_bufferSize(c.handle, c.parameters, CUBLAS_FILL_MODE_UPPER, n, type_of(l), l.raw(), n,
                                          type_of(l), &bytes.device, &bytes.host));
        return bytes;
      },
      [&](const Call& c, const Bytes& b, int64_t i) {
        return cusolverDnXpotrf(c.handle, c.parameters, CUBLAS_FILL_MODE_UPPER, n, type_of(l), at(l, i * n * n), n,
                                type_of(l), c.device, b.device, c.host, b.host, c.info);
      });
  clear_triangle(l, true);
  const std::vector<double> diagonal = diagonals(l);  // NaN and infinity anywhere in a row reach its end
  for (size_t i = 0; i < diagonal.size(); ++i) {
    const size_t matrix = i / static_cast<size_t>(n);
    check_definite("cholesky", static_cast<int64_t>(matrix), info[matrix] == 0 && std::isfinite(diagonal[i]));
  }
}

void solve(In a, In b, Out x) {
  if (b.numel() == 0) return;
  const Factors factors(a);
  factors.check_regular("solve");
  Tensor right = b.transposed().clone();
  solve_factored(factors.lu, factors.pivots, CUBLAS_OP_T, right);
  x.copy_(right.transposed());
}

// A triangular matrix is its own factor u, beside l = 1: the transpose of a lower one is upper.
void solve_triangular(In a, In b, bool upper, Out x) {
  if (b.numel() == 0) return;
  const int64_t n = a.dim(-1);
  Tensor factor = upper ? a.transposed().clone() : a.clone();
  clear_triangle(factor, true);
  const std::vector<double> diagonal = diagonals(factor);
  for (size_t i = 0; i < diagonal.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    if (diagonal[i] == 0) fail_singular("solve_triangular", place / n, place % n);
  }
  std::vector<int64_t> own(static_cast<size_t>(n));  // no rows are exchanged
  for (int64_t k = 0; k < n; ++k) own[static_cast<size_t>(k)] = k + 1;
  const Tensor pivots = from_vector(own, {1, n}, a.device()).expanded({count_of(a), n}).clone();
  Tensor right = b.transposed().clone();
  solve_factored(factor, pivots, upper ? CUBLAS_OP_N : CUBLAS_OP_T, right);
  x.copy_(right.transposed());
}

void inverse(In a, Out y) {
  if (a.numel() == 0) return;
  const Factors factors(a);
  factors.check_regular("inverse");
  const int64_t n = a.dim(-1);
  y.fill(0);
  y.view({count_of(y), n}, {n * n, n + 1}, 0).fill(1);
  solve_factored(factors.lu, factors.pivots, CUBLAS_OP_N, y);  // (a^T)^-1 by columns is a^-1 by rows
}

void slogdet(In a, Out sign, Out log) {
  if (a.dim(-1) == 0) {  // the product of nothing
    sign.fill(1);
    log.fill(0);
    return;
  }
  if (a.numel() == 0) return;
  const Factors factors(a);
  const std::vector<double> diagonal = diagonals(factors.lu);
  const std::vector<int64_t> pivots = factors.pivots.to_vector<int64_t>();
  const int64_t n = a.dim(-1), count = count_of(a);
  std::vector<double> signs, logs;
  for (int64_t i = 0; i < count; ++i) {
    const SignAndLog<double> found = sign_and_log(diagonal.data() + i * n, 1, pivots.data() + i * n, n);
    signs.push_back(found.sign);
    logs.push_back(found.log);
  }
  sign.copy_(from_vector(signs, sign.shape(), sign.device()));
  log.copy_(from_vector(logs, log.shape(), log.device()));
}

// The routine that makes q of geqrf's result, which cuSOLVER has per type.
template <class T, class Size, class Run>
void make_q(Size size, Run run, Out columns, In tau, int64_t m, int64_t k) {
  const int rows = static_cast<int>(m), factors = static_cast<int>(k);
  int length = 0;
  each_matrix(
      columns,
      [&](const Call& c) -> Bytes {
        check(size(c.handle, rows, factors, factors, columns.data<T>(), rows, tau.data<T>(), &length));
        return {.device = static_cast<size_t>(length) * sizeof(T)};
      },
      [&](const Call& c, const Bytes&, int64_t i) {
        return run(c.handle, rows, factors, factors, static_cast<T*>(at(columns, i * area(columns))), rows,
                   tau.data<T>() + i * k, static_cast<T*>(c.device), length, c.info);
      });
}

void qr(In a, Out q, Out r) {
  if (q.numel() == 0) {
    r.fill(0);
    return;
  }
  const int64_t m = a.dim(-2), n = a.dim(-1), k = std::min(m, n);
  braid::check(m <= std::numeric_limits<int>::max(), "qr", [&] { return str("needs sizes below 2^31, got ", m); });
  Tensor columns = a.transposed().clone(), tau = empty({count_of(a), k}, a.dtype(), a.device());
  each_matrix(
      a,
      [&](const Call& c) {
        Bytes bytes;
        check(cusolverDnXgeqrf_bufferSize(c.handle, c.parameters, m, n, type_of(a), columns.raw(), m, type_of(a),
                                          tau.raw(), type_of(a), &bytes.device, &bytes.host));
        return bytes;
      },
      [&](const Call& c, const Bytes& b, int64_t i) {
        return cusolverDnXgeqrf(c.handle, c.parameters, m, n, type_of(a), at(columns, i * m * n), m, type_of(a),
                                at(tau, i * k), type_of(a), c.device, b.device, c.host, b.host, c.info);
      });
  r.copy_(columns.transposed().sliced(-2, 0, k));
  clear_triangle(r, false);
  if (a.dtype() == DType::f64)
    make_q<double>(cusolverDnDorgqr_bufferSize, cusolverDnDorgqr, columns, tau, m, k);
  else
    make_q<float>(cusolverDnSorgqr_bufferSize, cusolverDnSorgqr, columns, tau, m, k);
  q.copy_(columns.sliced(-2, 0, k).transposed());
}

void eigh(In a, Out w, Out v) {
  if (a.numel() == 0) return;
  check_finite("eigh", a);
  const int64_t n = a.dim(-1);
  Tensor columns = a.clone();
  const std::vector<int32_t> info = each_matrix(
      a,
      [&](const Call& c) {
        Bytes bytes;
        check(cusolverDnXsyevd_bufferSize(c.handle, c.parameters, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_UPPER, n,
                                          type_of(a), columns.raw(), n, type_of(a), w.raw(), type_of(a), &bytes.device,
                                          &bytes.host));
        return bytes;
      },
      [&](const Call& c, const Bytes& b, int64_t i) {
        return cusolverDnXsyevd(c.handle, c.parameters, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_UPPER, n, type_of(a),
                                at(columns, i * n * n), n, type_of(a), at(w, i * n), type_of(a), c.device, b.device,
                                c.host, b.host, c.info);
      });
  for (size_t i = 0; i < info.size(); ++i) check_converged("eigh", static_cast<int64_t>(i), info[i]);
  v.copy_(columns.transposed());
}

// cuSOLVER needs at least as many rows as columns. A wide matrix is its tall transpose there, whose factors
// a^T = vh^T diag(s) u^T lie in memory as u and vh do; a tall one is transposed, and its factors are.
void svd(In a, Out u, Out s, Out vh) {
  if (a.numel() == 0) return;
  check_finite("svd", a);
  const bool wide = a.dim(-1) >= a.dim(-2);
  const int64_t m = std::max(a.dim(-2), a.dim(-1)), n = std::min(a.dim(-2), a.dim(-1));
  Tensor columns = wide ? a.clone() : a.transposed().clone();
  Tensor left = wide ? vh : empty_like(u.transposed()), right = wide ? u : empty_like(vh);
  const std::vector<int32_t> info = each_matrix(
      a,
      [&](const Call& c) {
        Bytes bytes;
        check(cusolverDnXgesvd_bufferSize(c.handle, c.parameters, 'S', 'S', m, n, type_of(a), columns.raw(), m,
                                          type_of(a), s.raw(), type_of(a), left.raw(), m, type_of(a), right.raw(), n,
                                          type_of(a), &bytes.device, &bytes.host));
        return bytes;
      },
      [&](const Call& c, const Bytes& b, int64_t i) {
        return cusolverDnXgesvd(c.handle, c.parameters, 'S', 'S', m, n, type_of(a), at(columns, i * m * n), m,
                                type_of(a), at(s, i * n), type_of(a), at(left, i * m * n), m, type_of(a),
                                at(right, i * n * n), n, type_of(a), c.device, b.device, c.host, b.host, c.info);
      });
  for (size_t i = 0; i < info.size(); ++i) check_converged("svd", static_cast<int64_t>(i), info[i]);
  if (wide) return;
  u.copy_(left.transposed());
  vh.copy_(right.transposed());
}

}  // namespace

constinit const LinalgKernels linalg_kernels{.cholesky = cholesky,
                                             .solve = solve,
                                             .solve_triangular = solve_triangular,
                                             .inverse = inverse,
                                             .slogdet = slogdet,
                                             .qr = qr,
                                             .eigh = eigh,
                                             .svd = svd};

}  // namespace braid::cuda
