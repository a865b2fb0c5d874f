#include "braid/nn/layers/dropout.h"

#include <boost/test/unit_test.hpp>

#include "braid/autograd/ops.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(dropout)

BOOST_AUTO_TEST_CASE(acts_only_in_training) {
  nn::Dropout dropout(0.5);
  Tensor x = full({1000}, 1);
  BOOST_TEST(is_close(dropout(x, nn::Mode::eval, {1, 1}), x, 0));
  double kept = sum(dropout(x, nn::Mode::train, {1, 1})).item() / 2;
  BOOST_TEST(kept > 420);
  BOOST_TEST(kept < 580);
  BOOST_TEST(throws_with([] { nn::Dropout(1.0); }, "must lie in [0, 1)"));
}

BOOST_AUTO_TEST_SUITE_END()
