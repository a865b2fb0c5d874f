#include "braid/nn/linear.h"

#include <boost/test/unit_test.hpp>

#include "tests/nn/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(linear_layer)

BOOST_AUTO_TEST_CASE(every_parameter_gets_a_gradient) {
  nn::Linear linear(5, 3, {.bias = true}, {1, 1});
  check_gradient_flow(linear, linear(randn({2, 4, 5}, {11, 1})));
}

BOOST_AUTO_TEST_SUITE_END()
