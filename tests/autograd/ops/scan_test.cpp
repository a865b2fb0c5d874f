#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "braid/autograd.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(scans)

namespace {
const double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
}

BOOST_AUTO_TEST_CASE(products_with_zeros_have_their_derivative) {
  Tensor x = from_values({2, 0, 3, 0, 5}, {5}, DType::f64);
  require_grad(x);
  const Tensor y = cumprod(x);
  BOOST_TEST(is_close(y.to_vector<double>(), {2, 0, 0, 0, 0}, 0));
  backward(sum(y));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {1, 8, 0, 0, 0}, 0));  // dx_1 = 2 + 2 3
}

BOOST_AUTO_TEST_CASE(running_sums_of_f32_keep_small_terms) {
  const Tensor x = from_values({16777216, 1, 1, 1, 1}, {5});
  BOOST_TEST(is_close(cumsum(x).to_vector<double>(), {16777216, 16777216, 16777218, 16777220, 16777220}, 0));
}

BOOST_AUTO_TEST_CASE(extremes_so_far_and_their_indices) {
  Tensor x = from_values({1, 3, 2, 3, kNan, 9}, {6}, DType::f64);
  const ValuesAndIndices up = cummax(x), down = cummin(x);
  BOOST_TEST(is_close(up.indices.to_vector<double>(), {0, 1, 1, 1, 4, 4}, 0));
  BOOST_TEST(is_close(down.indices.to_vector<double>(), {0, 0, 0, 0, 4, 4}, 0));
  BOOST_TEST(std::isnan(up.values.to_vector<double>()[5]));
  require_grad(x);
  backward(cummax(x).values, from_values({1, 2, 4, 8, 16, 32}, {6}, DType::f64));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {1, 14, 0, 0, 48, 0}, 0));
  const Tensor ids = from_vector(std::vector<int64_t>{5, 7, 6, 1, 9, 9}, {2, 3});
  BOOST_TEST(is_close(cummax(ids, 0).values.to_vector<double>(), {5, 7, 6, 5, 9, 9}, 0));
  BOOST_TEST(is_close(cummin(ids, 1).indices.to_vector<double>(), {0, 0, 0, 0, 0, 0}, 0));
}

BOOST_AUTO_TEST_CASE(logarithms_of_running_sums_do_not_overflow) {
  for (DType type : {DType::f64, DType::f32, DType::bf16}) {
    Tensor x = from_values({-kInf, 1000, 1000, -1000}, {4}, type);
    require_grad(x);
    const Tensor y = logcumsumexp(x);
    BOOST_TEST(is_close(y.to_vector<double>(), {-kInf, 1000, 1000 + std::log(2), 1000 + std::log(2)}, 4e-3));
    backward(sum(y));
    BOOST_TEST(is_close(grad(x).to_vector<double>(), {0, 2, 1, 0}, 1e-2));
  }
  BOOST_TEST(is_close(logcumsumexp(from_values({0, kInf, 1}, {3})).to_vector<double>(), {0, kInf, kInf}, 0));
  BOOST_TEST(std::isnan(logcumsumexp(from_values({0, kNan, 1}, {3})).to_vector<double>()[2]));
}

BOOST_AUTO_TEST_CASE(differences) {
  const Tensor x = from_values({1, 4, 9, 16}, {4});
  BOOST_TEST(is_close(diff(x).to_vector<double>(), {3, 5, 7}, 0));
  BOOST_TEST(is_close(diff(x, 3).to_vector<double>(), {0}, 0));
  BOOST_TEST(diff(x, 9).numel() == 0);
  BOOST_TEST(is_close(diff(x, 0), x, 0));
}

BOOST_AUTO_TEST_CASE(misfits_of_scans_are_named) {
  BOOST_TEST(throws_with([] { cumprod(zeros({})); }, "[cumprod] needs at least one axis, got ()"));
  BOOST_TEST(throws_with([] { cumprod(zeros({2}, DType::i64)); }, "[cumprod] needs a floating-point tensor, got i64"));
  BOOST_TEST(throws_with([] { cummax(zeros({2}), 1); }, "[cummax] axis 1 does not exist"));
  BOOST_TEST(throws_with([] { diff(zeros({2}), -1); }, "[diff] needs an order of at least 0, got -1"));
  BOOST_TEST(throws_with([] { linear_recurrence(zeros({2}), zeros({3})); },
                         "[linear_recurrence] needs factors and terms of one shape, got (2) and (3)"));
}

BOOST_AUTO_TEST_SUITE_END()
