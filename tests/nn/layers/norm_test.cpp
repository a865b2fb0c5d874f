#include "braid/nn/layers/norm.h"

#include <boost/test/unit_test.hpp>

#include "tests/nn/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(norms)

BOOST_AUTO_TEST_CASE(every_parameter_gets_a_gradient) {
  nn::RmsNorm rms(6, 1e-5);
  check_gradient_flow(rms, rms(randn({3, 6}, {11, 1})));
  nn::LayerNorm layer(6, 1e-5);
  check_gradient_flow(layer, layer(randn({3, 6}, {11, 1})));
}

BOOST_AUTO_TEST_SUITE_END()
