// Linear algebra beside the rows: signs and zero, mistakes, batches, special matrices, second derivatives.
#include "braid/autograd/linalg.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "braid/tensor/kernels/linalg.h"
#include "braid/tensor/parallel.h"
#include "tests/support/compare.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

namespace {
boost::test_tools::assertion_result with_lapack(boost::unit_test::test_unit_id) { return cpu::has_lapack(); }

Tensor matrix(std::vector<double> values, int64_t rows) {
  const auto columns = static_cast<int64_t>(values.size()) / rows;
  return from_vector(std::move(values), {rows, columns});
}
Tensor random_matrix(const Shape& shape) { return randn(shape, RandomKey(7), DType::f64); }
std::vector<double> list(const Tensor& x) { return x.to_vector<double>(); }
}  // namespace

BOOST_AUTO_TEST_SUITE(linear_algebra, *boost::unit_test::precondition(with_lapack))

BOOST_AUTO_TEST_CASE(signs_of_determinants) {
  const SignAndLog even = slogdet(matrix({2, 0, 0, 3}, 2)), odd = slogdet(matrix({0, 2, 3, 0}, 2));
  BOOST_TEST(even.sign.item() == 1);
  BOOST_TEST(odd.sign.item() == -1);
  BOOST_TEST(is_close({odd.log.item()}, {std::log(6)}, 1e-15));
  BOOST_TEST(det(matrix({0, 2, 3, 0}, 2)).item() == -6, boost::test_tools::tolerance(1e-14));
  const SignAndLog singular = slogdet(matrix({1, 2, 2, 4}, 2));
  BOOST_TEST(singular.sign.item() == 0);
  BOOST_TEST(singular.log.item() == -std::numeric_limits<double>::infinity());
  BOOST_TEST(det(matrix({1, 2, 2, 4}, 2)).item() == 0);
  BOOST_TEST(det(zeros({0, 0}, DType::f64)).item() == 1);  // the product of nothing
}

BOOST_AUTO_TEST_CASE(factors_have_their_properties) {
  for (const Shape& shape : {Shape{5, 3}, Shape{3, 5}, Shape{2, 4, 4}, Shape{60, 40}}) {
    const Tensor a = random_matrix(shape);
    const QAndR f = qr(a);
    const Svd g = svd(a);
    const auto orthonormal = [](const Tensor& columns) {
      const Tensor product = matmul(transpose(columns), columns);
      const Tensor one = expand(eye(columns.dim(-1), DType::f64), product.shape());
      return is_close(list(product), list(one), 1e-13);
    };
    BOOST_TEST_CONTEXT(str(shape)) {
      BOOST_TEST(orthonormal(f.q));
      BOOST_TEST(orthonormal(g.u));
      BOOST_TEST(orthonormal(transpose(g.vh)));
      BOOST_TEST(is_close(list(matmul(f.q, f.r)), list(a), 1e-13));
      BOOST_TEST(is_close(list(matmul(mul(g.u, unsqueeze(g.s, -2)), g.vh)), list(a), 1e-13));
      const std::vector<double> s = list(g.s);
      for (size_t i = 0; i < s.size(); ++i) {
        BOOST_TEST(s[i] > 0);
        if (i % static_cast<size_t>(g.s.dim(-1)) > 0) BOOST_TEST(s[i] <= s[i - 1]);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(eigenvalues_ascend_and_only_the_lower_triangle_is_read) {
  const EigenPairs e = eigh(matrix({2, 1e9, 1, 2}, 2));
  BOOST_TEST(is_close(list(e.values), {1, 3}, 1e-14));
  BOOST_TEST(is_close(list(cholesky(matrix({4, 1e9, 2, 5}, 2))), {2, 0, 1, 2}, 1e-14));
}

BOOST_AUTO_TEST_CASE(least_squares) {
  // Through (0, 1), (1, 3), (2, 5), (3, 7) with one outlier pair that cancels: 1 + 2 t.
  const Tensor a = matrix({1, 0, 1, 1, 1, 2, 1, 3}, 4), b = matrix({1, 3, 5, 7}, 4);
  BOOST_TEST(is_close(list(lstsq(a, b)), {1, 2}, 1e-13));
  // x + y = 2: the smallest solution; equal to the pseudo-inverse's.
  const Tensor wide = matrix({1, 1}, 1), two = matrix({2}, 1);
  BOOST_TEST(is_close(list(lstsq(wide, two)), {1, 1}, 1e-14));
  BOOST_TEST(is_close(list(matmul(pinv(wide), two)), {1, 1}, 1e-14));
}

BOOST_AUTO_TEST_CASE(ranks_and_norms) {
  const Tensor one = matrix({1, 2, 2, 4}, 2);
  BOOST_TEST(matrix_rank(one).item() == 1);
  BOOST_TEST(matrix_rank(zeros({3, 2}, DType::f64)).item() == 0);
  BOOST_TEST(matrix_rank(eye(3, DType::f64)).item() == 3);
  BOOST_TEST(is_close(list(matmul(matmul(one, pinv(one)), one)), list(one), 1e-13));  // of a singular matrix
  const Tensor a = matrix({3, 0, 0, -4}, 2);
  const auto norm = [&](MatrixNorm kind) { return matrix_norm(a, kind).item(); };
  BOOST_TEST(norm(MatrixNorm::frobenius) == 5, boost::test_tools::tolerance(1e-14));
  BOOST_TEST(norm(MatrixNorm::nuclear) == 7, boost::test_tools::tolerance(1e-14));
  BOOST_TEST(norm(MatrixNorm::spectral) == 4, boost::test_tools::tolerance(1e-14));
  BOOST_TEST(matrix_norm(matrix({1, -2, 3, 4}, 2), MatrixNorm::one).item() == 6);
  BOOST_TEST(matrix_norm(matrix({1, -2, 3, 4}, 2), MatrixNorm::infinity).item() == 7);
  Tensor zero = zeros({2, 2}, DType::f64);
  require_grad(zero);
  backward(matrix_norm(zero));
  BOOST_TEST(is_close(list(grad(zero)), {0, 0, 0, 0}, 0));
}

BOOST_AUTO_TEST_CASE(vectors_and_batches_broadcast) {
  const Tensor a = random_matrix({3, 1, 4, 4}), b = random_matrix({2, 4, 2});
  const Tensor x = solve(a, b);
  BOOST_TEST(str(x.shape()) == str(Shape{3, 2, 4, 2}));
  BOOST_TEST(is_close(list(matmul(a, x)), list(expand(b, {3, 2, 4, 2})), 1e-12));
  const Tensor v = from_vector(std::vector<double>{2, 3}, {2});
  BOOST_TEST(is_close(list(solve(matrix({2, 0, 0, 3}, 2), v)), {1, 1}, 1e-15));
  BOOST_TEST(is_close(list(solve_triangular(matrix({2, 9, 1, 3}, 2), v, false)), {1, 2. / 3}, 1e-15));
  BOOST_TEST(is_close(list(solve_triangular(matrix({2, 1, 9, 3}, 2), v, true)), {0.5, 1}, 1e-15));
}

BOOST_AUTO_TEST_CASE(empty_batches_and_matrices) {
  BOOST_TEST(str(inverse(zeros({0, 3, 3}, DType::f64)).shape()) == str(Shape{0, 3, 3}));
  BOOST_TEST(str(svd(zeros({2, 0, 3}, DType::f64)).vh.shape()) == str(Shape{2, 0, 3}));
  BOOST_TEST(str(qr(zeros({3, 0}, DType::f64)).q.shape()) == str(Shape{3, 0}));
  BOOST_TEST(str(solve(zeros({2, 2}, DType::f64), zeros({2, 0}, DType::f64)).shape()) == str(Shape{2, 0}));
}

BOOST_AUTO_TEST_CASE(mistakes_name_the_matrix) {
  const Tensor singular = stack({eye(2, DType::f64), matrix({1, 2, 2, 4}, 2)});
  const double nan = std::nan("");
  BRAID_CHECK_FAILS(inverse(singular), ErrorKind::misuse, "[inverse] matrix 1 is singular: pivot 1 is 0; pinv()");
  BRAID_CHECK_FAILS(solve(singular, singular), ErrorKind::misuse, "[solve] matrix 1 is singular");
  BRAID_CHECK_FAILS(cholesky(matrix({1, 2, 2, 1}, 2)), ErrorKind::misuse,
                    "[cholesky] matrix 0 is not positive definite; add a small multiple of eye(n)");
  BRAID_CHECK_FAILS(cholesky(matrix({nan, 2, 2, 1}, 2)), ErrorKind::misuse, "is not positive definite");
  BRAID_CHECK_FAILS(eigh(matrix({nan, 2, 2, 1}, 2)), ErrorKind::misuse,
                    "[eigh] matrix 0 holds NaN or infinity; see isfinite()");
  BRAID_CHECK_FAILS(svd(matrix({INFINITY, 2, 2, 1}, 2)), ErrorKind::misuse, "[svd] matrix 0 holds NaN or infinity");
  BRAID_CHECK_FAILS(solve_triangular(matrix({1, 0, 5, 0}, 2), eye(2, DType::f64), false), ErrorKind::misuse,
                    "[solve_triangular] matrix 0 is singular: pivot 1 is 0");
  BRAID_CHECK_FAILS(inverse(zeros({2, 3}, DType::f64)), ErrorKind::misuse, "[inverse] needs square matrices",
                    "(2, 3); svd()");
  BRAID_CHECK_FAILS(det(zeros({2, 2}, DType::bf16)), ErrorKind::misuse, "[det] needs f32 or f64, got bf16");
  BRAID_CHECK_FAILS(solve(eye(2, DType::f64), zeros({3, 1}, DType::f64)), ErrorKind::misuse, "[solve] needs b");
  BRAID_CHECK_FAILS(solve(eye(2, DType::f64), zeros({2, 1})), ErrorKind::misuse, "[solve]", "cast one of them");
  BRAID_CHECK_FAILS(matrix_rank(require_grad(*std::make_unique<Tensor>(eye(2, DType::f64)))), ErrorKind::misuse,
                    "[matrix_rank] has no derivative");
  Tensor a = matrix({1, 2, 2, 4}, 2);
  require_grad(a);
  BRAID_CHECK_FAILS(backward(det(a)), ErrorKind::misuse, "is singular");
}

BOOST_AUTO_TEST_CASE(equal_bits_at_any_number_of_threads) {
  const Tensor a = random_matrix({40, 12, 12});
  const int before = threads();
  std::vector<double> first;
  for (const int n : {1, 2, 4}) {
    set_threads(n);
    std::vector<double> all = list(inverse(a));
    for (const Tensor& x : {svd(a).u, qr(a).q, svdvals(a)})
      for (const double value : list(x)) all.push_back(value);
    if (first.empty()) first = all;
    BOOST_TEST((all == first));
  }
  set_threads(before);
}

BOOST_AUTO_TEST_CASE(second_derivatives) {
  // The Hessian of log det a along u and v is -tr(a^-1 u a^-1 v).
  Tensor a = add(matmul(random_matrix({3, 3}), transpose(random_matrix({3, 3}))), eye(3, DType::f64)).detach();
  require_grad(a);
  const Tensor u = randn({3, 3}, RandomKey(1), DType::f64), v = randn({3, 3}, RandomKey(2), DType::f64);
  const Tensor da = grad(slogdet(a).log, {a}, {.create_graph = true})[0];
  const Tensor along = grad(sum(mul(da, u)), {a})[0];
  const NoGrad off;
  const Tensor i = inverse(a);
  const double want = -sum(mul(matmul(matmul(i, u), i), transpose(v))).item();
  BOOST_TEST(sum(mul(along, v)).item() == want, boost::test_tools::tolerance(1e-11));
}

BOOST_AUTO_TEST_SUITE_END()
