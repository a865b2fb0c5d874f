#include <boost/test/unit_test.hpp>
#include <cmath>
#include <sstream>

#include "braid/autograd/ops.h"
#include "braid/tensor/print.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(factories)

BOOST_AUTO_TEST_CASE(constants) {
  BOOST_TEST(is_close(ones({2, 2}, DType::i64).to_vector<double>(), {1, 1, 1, 1}, 0));
  BOOST_TEST(is_close(eye(2, DType::f64).to_vector<double>(), {1, 0, 0, 1}, 0));
  BOOST_TEST(eye(0).numel() == 0);
  BOOST_TEST(throws_with([] { eye(-1); }, "[eye] needs a size of at least 0, got -1"));
}

BOOST_AUTO_TEST_CASE(random_values_depend_on_the_key_alone) {
  const RandomKey key{1, 2};
  Tensor x = randn({100, 100}, key), y = randn({50, 10}, key);
  BOOST_TEST(is_close(x.reshaped({10000}).sliced(0, 0, 500), y.reshaped({500}), 0));
  BOOST_TEST(!is_close(y, randn({50, 10}, {1, 3}), 0.01));
  BOOST_TEST(std::fabs(mean(x).item()) < 0.03);
  BOOST_TEST(std::fabs(var(x).item() - 1) < 0.05);
  Tensor u = rand({10000}, key);
  BOOST_TEST(min(u, 0).item() > 0);
  BOOST_TEST(max(u, 0).item() < 1);
  BOOST_TEST(std::fabs(mean(u).item() - 0.5) < 0.01);
  BOOST_TEST(throws_with([&] { randn({2}, key, DType::i64); }, "[randn] needs a floating-point tensor, got i64"));
}

BOOST_AUTO_TEST_CASE(shapes_print) {
  std::ostringstream text;
  text << zeros({2, 3}).shape();
  BOOST_TEST(text.str() == "(2, 3)");
}

BOOST_AUTO_TEST_SUITE_END()
