#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/autograd.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(ops_reduce)

BOOST_AUTO_TEST_CASE(misfits_are_named) {
  Tensor x = full({2, 3}, 1), ids = full({2, 3}, 1, DType::i64);
  BOOST_TEST(throws_with([&] { sum(x, {2}); }, "[sum] axis 2 does not exist in a tensor of rank 2"));
  BOOST_TEST(throws_with([&] { sum(x, {0, -2}); }, "[sum] axis -2 stands twice"));
  BOOST_TEST(throws_with([&] { mean(ids); }, "[mean] needs a floating-point tensor, got i64"));
  BOOST_TEST(throws_with([&] { max(full({2, 0}, 1), 1); }, "[max] axis 1 of (2, 0) is empty"));
  BOOST_TEST(throws_with([&] { min(x, 5); }, "[min] axis 5 does not exist"));
  BOOST_TEST(throws_with([&] { sum_to(x, {2}); }, "[sum_to] shapes (2) and (2, 3) do not broadcast"));
  BOOST_TEST(throws_with([&] { sum_to(x, {4, 2, 3}); }, "[sum_to] shape (4, 2, 3) does not repeat to (2, 3)"));
  BOOST_TEST(
      throws_with([&] { sum_product(x, full({4}, 1), {0}); }, "[sum_product] shapes (2, 3) and (4) do not broadcast"));
  BOOST_TEST(throws_with([&] { sum_product(x, x.to(DType::f64), {0}); }, "[sum_product] the inputs are f32 and f64"));
  BOOST_TEST(throws_with([&] { argmax(full({}, 1)); }, "[argmax] needs at least one axis"));
  BOOST_TEST(throws_with([&] { argmax(full({3, 0}, 1)); }, "[argmax] the last axis of (3, 0) is empty"));
}

BOOST_AUTO_TEST_CASE(the_first_of_equals_gets_the_gradient) {
  Tensor x = from_values({1, 3, 3, 0, 0, 5}, {2, 3});
  require_grad(x);
  backward(sum(max(x, 1)));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {0, 1, 0, 0, 0, 1}, 0));
  zero_grad(x);
  backward(sum(min(x, -1, true)));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {1, 0, 0, 1, 0, 0}, 0));
}

BOOST_AUTO_TEST_CASE(means_of_nothing_and_of_16_bit_values) {
  BOOST_TEST(std::isnan(mean(full({0}, 1)).item()));
  BOOST_TEST(sum(full({0}, 1)).item() == 0.0);
  Tensor x = full({1000}, 300, DType::f16);  // the sum, 300000, is beyond f16
  BOOST_TEST(mean(x).item() == 300.0);
}

BOOST_AUTO_TEST_CASE(log_sums_of_infinities) {
  const double inf = INFINITY;
  for (DType t : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    Tensor x = from_values({-inf, -inf, 0, inf, 1, -inf, 1000, 1000}, {4, 2}, t);
    require_grad(x);
    Tensor y = logsumexp(x, 1);
    BOOST_TEST(is_close(y.to_vector<double>(), {-inf, inf, 1, 1000 + std::log(2)}, 1e-2));
  }
  Tensor x = from_values({-inf, -inf, 1, -inf}, {2, 2}, DType::f64);
  require_grad(x);
  backward(sum(logsumexp(x, -1)));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {0, 0, 1, 0}, 0));  // a row of only -inf has no gradient
}

BOOST_AUTO_TEST_CASE(variances_without_a_degree_of_freedom) {
  BOOST_TEST(std::isnan(var(full({1}, 3)).item()));
  BOOST_TEST(var(full({1}, 3), {0}, 0).item() == 0.0);
  BOOST_TEST(std::isnan(var(full({0}, 1)).item()));
  // A mean that is large beside the deviation costs no digits.
  BOOST_TEST(std::fabs(var(from_values({1e6 + 1, 1e6 + 2, 1e6 + 3}, {3})).item() - 1) < 1e-5);
}

BOOST_AUTO_TEST_CASE(sum_product_is_the_sum_of_the_product) {
  Tensor x = full({2, 3, 1}, 2), y = full({3, 4}, 3);
  Tensor z = sum_product(x, y, {1, 2});
  BOOST_TEST(str(z.shape()) == "(2, 1, 1)");
  BOOST_TEST(is_close(z.to_vector<double>(), {72, 72}, 0));
  BOOST_TEST(str(sum_product(x, y, {}).shape()) == "(2, 3, 4)");
}

BOOST_AUTO_TEST_SUITE_END()
