#include "braid/nn/linear.h"

#include <boost/test/unit_test.hpp>

#include "tests/nn/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(linear_layer)

BOOST_AUTO_TEST_CASE(every_parameter_gets_a_gradient) {
  nn::Linear linear(5, 3, {.bias = true}, {1, 1});
  check_gradient_flow(linear, linear(randn({2, 4, 5}, {11, 1})));
}

// y + alpha / r (x A^T) B^T, against the merged weight and finite differences.
BOOST_AUTO_TEST_CASE(lora_is_a_low_rank_change_of_the_weight) {
  const auto make = [](const Tensor& a, const Tensor& b) {
    nn::Linear linear(5, 3, {.bias = true}, {1, 1});
    nn::to(linear, DType::f64);
    linear.set_lora(a.clone(), b.clone(), 3);
    return linear;
  };
  const Tensor x = randn({4, 5}, {11, 1}, DType::f64), a = randn({2, 5}, {12, 1}, DType::f64),
               b = randn({3, 2}, {13, 1}, DType::f64);
  nn::Linear apart = make(a, b), merged = make(a, b);
  check_gradient_flow(apart, apart(x));
  merged.merge_lora();
  BOOST_TEST(merged.lora_rank() == 0);
  BOOST_TEST(nn::parameters(merged).size() == 2u);
  NoGrad off;
  BOOST_TEST(is_close(apart(x), merged(x), 1e-14));
  nn::Linear plain(5, 3, {.bias = true}, {1, 1});
  nn::to(plain, DType::f64);
  BOOST_TEST(
      is_close(apart(x), add(plain(x), scale(matmul(matmul(x, transpose(a, 0, 1)), transpose(b, 0, 1)), 1.5)), 1e-14));
  BOOST_CHECK_THROW(make(b, a), Error);
}

BOOST_AUTO_TEST_SUITE_END()
