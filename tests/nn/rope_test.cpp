#include "braid/nn/rope.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/autograd/ops.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(rope_layer)

BOOST_AUTO_TEST_CASE(tables) {
  nn::Rope exact(4, 8, 100, nn::Rope::Precision::exact, DType::f64),
      half(4, 8, 100, nn::Rope::Precision::f16, DType::f64);
  Tensor x = full({1, 1, 1, 4}, 1, DType::f64);
  // position 3: pairs (0, 2) and (1, 3) turn by 3 and by 3 * 100^(-1/2) = 0.3
  std::vector<double> want{std::cos(3.0) - std::sin(3.0), std::cos(0.3) - std::sin(0.3), std::cos(3.0) + std::sin(3.0),
                           std::cos(0.3) + std::sin(0.3)};
  BOOST_TEST(is_close(exact(x, 3).to_vector<double>(), want, 1e-14));
  BOOST_TEST(is_close(half(x, 3).to_vector<double>(), want, 1e-3));
  BOOST_TEST(!is_close(half(x, 3).to_vector<double>(), want, 1e-6));  // the rounding is really there
  BOOST_TEST(throws_with([&] { exact(x, 8); }, "beyond the model's longest sequence of 8"));
}

BOOST_AUTO_TEST_SUITE_END()
