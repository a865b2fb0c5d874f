// autograd/create.h.
#include "braid/autograd/create.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "braid/tensor/print.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(ops_create)

namespace {
std::vector<double> values_of(const Tensor& x) { return x.to_vector<double>(); }
}  // namespace

BOOST_AUTO_TEST_CASE(ranges_with_steps) {
  BOOST_TEST(is_close(values_of(arange(2, 6)), {2, 3, 4, 5}, 0));
  BOOST_TEST((arange(2, 6).dtype() == DType::i64));
  BOOST_TEST(is_close(values_of(arange(8, 0, -3)), {8, 5, 2}, 0));
  BOOST_TEST(arange(3, 3).numel() == 0);
  BOOST_TEST(arange(3, 0).numel() == 0);
  BOOST_TEST(is_close(values_of(arange(0., 1., 0.25)), {0, 0.25, 0.5, 0.75}, 0));
  BOOST_TEST((arange(0., 1., 0.25).dtype() == DType::f32));
  BOOST_TEST((arange(0, 1, 0.25).dtype() == DType::f32));
  BOOST_TEST(is_close(values_of(arange(1., -0.1, -0.5, DType::f64)), {1, 0.5, 0}, 0));
  BOOST_TEST(is_close(values_of(arange(2, 4, 1, DType::f16)), {2, 3}, 0));
  BOOST_TEST(is_close(values_of(arange(3, DType::f32)), {0, 1, 2}, 0));  // that of tensor.h
  const int64_t last = std::numeric_limits<int64_t>::max();
  BOOST_TEST((arange(last - 2, last, 5).to_vector<int64_t>() == std::vector<int64_t>{last - 2}));
  BOOST_TEST(arange(int64_t{1} << 60, last, last, DType::bf16).item() == 0x1p60);
  BOOST_TEST(arange((int64_t{1} << 60) + (int64_t{1} << 52) + 1, last, last, DType::bf16).item() == 0x1p60 + 0x1p53);
  BOOST_TEST(arange(256, DType::u8).to_vector<int64_t>()[255] == 255);
  BOOST_TEST(throws_with([] { arange(257, DType::u8); }, "[arange] up to 256 leaves the range of u8"));
  BOOST_TEST(throws_with([] { arange(2, -2, -1, DType::u8); }, "[arange] from 2 to -1 leaves the range of u8"));
  BOOST_TEST(throws_with([] { arange(0., 2e10, 1e10, DType::i32); }, "leaves the range of i32"));
  BOOST_TEST(throws_with([] { arange(-1e19, 0., 1e19, DType::i64); }, "leaves the range of i64"));
  BOOST_TEST(is_close(arange(0., 2., 0.5, DType::u8).to_vector<double>(), {0, 0, 1, 1}, 0));
  BOOST_TEST(throws_with([] { arange(0, 1, 0); }, "[arange] needs a step other than 0"));
  BOOST_TEST(
      throws_with([] { arange(0., 1., 0.); }, "[arange] needs finite bounds and a step other than 0, got 0, 1, 0"));
  BOOST_TEST(throws_with([] { arange(0., std::nan(""), 1.); }, "[arange] needs finite bounds"));
}

BOOST_AUTO_TEST_CASE(spaces_meet_both_ends) {
  BOOST_TEST(is_close(values_of(linspace(0, 1, 5)), {0, 0.25, 0.5, 0.75, 1}, 0));
  BOOST_TEST(is_close(values_of(linspace(3, -1, 3)), {3, 1, -1}, 0));
  BOOST_TEST(is_close(values_of(linspace(2, 9, 1)), {2}, 0));
  BOOST_TEST(linspace(0, 1, 0).numel() == 0);
  for (const int64_t n : {2, 3, 10, 49, 1000}) {
    const std::vector<double> x = values_of(linspace(0.1, 0.7, n, DType::f64));
    BOOST_TEST(x.front() == 0.1);
    BOOST_TEST(x.back() == 0.7);
    for (size_t i = 1; i < x.size(); ++i) BOOST_TEST(x[i] > x[i - 1]);
  }
  const double most = std::numeric_limits<double>::max();  // their difference is infinite
  BOOST_TEST(is_close(values_of(linspace(-most, most, 3, DType::f64)), {-most, 0, most}, 1e-15));
  BOOST_TEST(is_close(values_of(logspace(0, 3, 4)), {1, 10, 100, 1000}, 1e-6));
  BOOST_TEST(is_close(values_of(logspace(-1, 1, 3, 2, DType::f64)), {0.5, 1, 2}, 0));
  BOOST_TEST(is_close(values_of(geomspace(1, 1000, 4, DType::f64)), {1, 10, 100, 1000}, 1e-15));
  BOOST_TEST(is_close(values_of(geomspace(-8, -1, 4, DType::f64)), {-8, -4, -2, -1}, 1e-15));
  BOOST_TEST(values_of(geomspace(0.3, 0.9, 7, DType::f64)).back() == 0.9);
  BOOST_TEST(throws_with([] { linspace(0, 1, -1); }, "[linspace] needs at least 0 values, got -1"));
  BOOST_TEST(throws_with([] { linspace(0, 1, 2, DType::i64); }, "[linspace] needs a floating-point type, got i64"));
  BOOST_TEST(throws_with([] { geomspace(0, 1, 2); }, "[geomspace] needs two values of one sign, not 0, got 0 and 1"));
  BOOST_TEST(throws_with([] { logspace(0, 1, 2, -2); }, "[logspace] needs a positive base, got -2"));
}

BOOST_AUTO_TEST_CASE(like_another) {
  Tensor x = full({2, 3}, 7, DType::f64);
  require_grad(x);
  for (const Tensor& y : {full_like(x, 1), ones_like(x)}) {
    BOOST_TEST(is_close(values_of(y), std::vector<double>(6, 1.0), 0));
    BOOST_TEST((y.dtype() == DType::f64));
    BOOST_TEST(!requires_grad(y));
  }
  BOOST_TEST(is_close(rand_like(x, {1, 2}), rand({2, 3}, {1, 2}, DType::f64), 0));
  BOOST_TEST(is_close(randn_like(x, {1, 2}), randn({2, 3}, {1, 2}, DType::f64), 0));
  BOOST_TEST(throws_with([] { randn_like(arange(3), {1, 2}); }, "[randn_like]"));
}

BOOST_AUTO_TEST_CASE(diagonals_and_triangles) {
  BOOST_TEST(is_close(values_of(eye(2, 3)), {1, 0, 0, 0, 1, 0}, 0));
  BOOST_TEST(is_close(values_of(eye(2, 3, 1)), {0, 1, 0, 0, 0, 1}, 0));
  BOOST_TEST(is_close(values_of(eye(3, 2, -2, DType::i32)), {0, 0, 0, 0, 1, 0}, 0));
  BOOST_TEST(is_close(values_of(eye(2, 2, 7)), {0, 0, 0, 0}, 0));
  BOOST_TEST(eye(0, 3).numel() == 0);
  BOOST_TEST(is_close(values_of(tri(2, 3)), {1, 0, 0, 1, 1, 0}, 0));
  BOOST_TEST(is_close(values_of(tri(2, 3, 1, DType::u8)), {1, 1, 0, 1, 1, 1}, 0));
  BOOST_TEST(throws_with([] { eye(-1, 2); }, "[eye] needs sizes of at least 0, got -1 and 2"));
  BOOST_TEST(throws_with([] { tri(1, -2); }, "[tri] needs sizes of at least 0, got 1 and -2"));
}

BOOST_AUTO_TEST_CASE(nested_lists) {
  BOOST_TEST(is_close(tensor({{1, 2, 3}, {4, 5, 6}}), from_values({1, 2, 3, 4, 5, 6}, {2, 3}), 0));
  BOOST_TEST(is_close(tensor({{1., 2.}, {3., 4.}}, DType::f64), from_values({1, 2, 3, 4}, {2, 2}, DType::f64), 0));
  BOOST_TEST(str(tensor({1, 2}).shape()) == "(2)");
  BOOST_TEST(str(tensor({{1}}).shape()) == "(1, 1)");
  BOOST_TEST(str(tensor({{{1, 2}}, {{3, 4}}, {{5, 6}}}).shape()) == "(3, 1, 2)");
  BOOST_TEST(str(tensor(5).shape()) == "()");
  BOOST_TEST((tensor({1, 0, 1}, DType::u8).dtype() == DType::u8));
  BOOST_TEST(throws_with([] { tensor({{1, 2}, {3}}); }, "[tensor] needs lists of equal lengths, as in (2, 2)"));
  BOOST_TEST(throws_with([] { tensor({{1, 2}, 3}); }, "got a number at depth 1"));
  BOOST_TEST(throws_with([] { tensor({1, {2}}); }, "got a list of 1 at depth 1"));
}

BOOST_AUTO_TEST_SUITE_END()
