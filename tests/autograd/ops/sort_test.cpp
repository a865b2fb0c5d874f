#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/autograd/ops.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(sorting)

BOOST_AUTO_TEST_CASE(equal_elements_keep_their_order_and_nan_is_largest) {
  const double inf = INFINITY;
  Tensor x = from_values({1, NAN, 0, 1, -inf, inf, 0, NAN}, {8});
  BOOST_TEST(is_close(argsort(x).to_vector<double>(), {4, 2, 6, 0, 3, 5, 1, 7}, 0));
  BOOST_TEST(is_close(argsort(x, true).to_vector<double>(), {1, 7, 5, 0, 3, 2, 6, 4}, 0));
  BOOST_TEST(is_close(topk(x, 3).indices.to_vector<double>(), {1, 7, 5}, 0));
}

BOOST_AUTO_TEST_CASE(gradients_go_back_to_their_elements) {
  Tensor x = from_values({3, 1, 2, 6, 5, 4}, {2, 3});
  require_grad(x);
  auto [values, indices] = topk(x, 2);
  BOOST_TEST(is_close(values.to_vector<double>(), {3, 2, 6, 5}, 0));
  BOOST_TEST(is_close(indices.to_vector<double>(), {0, 2, 0, 1}, 0));
  backward(values, from_values({10, 20, 30, 40}, {2, 2}));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {10, 0, 20, 30, 40, 0}, 0));
}

BOOST_AUTO_TEST_CASE(k_may_be_nothing_and_not_too_much) {
  Tensor x = zeros({2, 3});
  BOOST_TEST(str(topk(x, 0).values.shape()) == "(2, 0)");
  BOOST_TEST(
      throws_with([&] { topk(x, 4); }, "[topk] needs k between 0 and the size of the last axis of (2, 3), got 4"));
  BOOST_TEST(throws_with([] { sort(zeros({})); }, "[sort] needs at least one axis"));
  require_grad(x);
  BOOST_TEST(throws_with([&] { argsort(x); }, "argsort"));
}

BOOST_AUTO_TEST_SUITE_END()
