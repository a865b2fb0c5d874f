#include "braid/nn/layers/embedding.h"

#include <boost/test/unit_test.hpp>

#include "tests/nn/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(embedding)

BOOST_AUTO_TEST_CASE(every_parameter_gets_a_gradient) {
  nn::Embedding table(7, 3, nn::Init::normal(1), {1, 2});
  check_gradient_flow(table, table(from_vector<int64_t>({1, 6, 1, 0}, {2, 2})));
}

BOOST_AUTO_TEST_SUITE_END()
