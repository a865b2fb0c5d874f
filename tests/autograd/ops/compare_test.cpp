#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/autograd/ops.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(comparisons)

BOOST_AUTO_TEST_CASE(with_nan_only_ne_holds) {
  Tensor x = from_values({NAN, 1, NAN}, {3}), y = from_values({1, NAN, NAN}, {3});
  for (const Tensor& mask : {eq(x, y), x<y, x <= y, x> y, x >= y})
    BOOST_TEST(is_close(mask.to_vector<double>(), {0, 0, 0}, 0));
  BOOST_TEST(is_close(ne(x, y).to_vector<double>(), {1, 1, 1}, 0));
}

BOOST_AUTO_TEST_CASE(operators_take_numbers_and_integers) {
  Tensor x = from_values({-1, 0, 2}, {3}), ids = from_vector(std::vector<int64_t>{-1, 5, (int64_t{1} << 52) + 1}, {3});
  BOOST_TEST(((x < 0).dtype() == DType::u8));
  BOOST_TEST(is_close((x < 0).to_vector<double>(), {1, 0, 0}, 0));
  BOOST_TEST(is_close((x >= 0).to_vector<double>(), {0, 1, 1}, 0));
  BOOST_TEST(is_close((x > 1).to_vector<double>(), {0, 0, 1}, 0));
  BOOST_TEST(is_close((x <= -1).to_vector<double>(), {1, 0, 0}, 0));
  BOOST_TEST(is_close(eq(ids, -1).to_vector<double>(), {1, 0, 0}, 0));
  BOOST_TEST(is_close(eq(ids, std::pow(2, 52)).to_vector<double>(), {0, 0, 0}, 0));
}

// Neighbours that f64 rounds to one value.
BOOST_AUTO_TEST_CASE(integers_are_exact) {
  const int64_t large = (int64_t{1} << 53) + 1;
  const Tensor x = from_vector(std::vector<int64_t>{large, -large, 7}, {3}),
               y = from_vector(std::vector<int64_t>{large - 1, 1 - large, 7}, {3}), mask = eq(x, y);
  BOOST_TEST(is_close(mask.to_vector<double>(), {0, 0, 1}, 0));
  BOOST_TEST(is_close((x < y).to_vector<double>(), {0, 1, 0}, 0));
  const Tensor first = from_vector(std::vector<uint8_t>{1, 0, 1}, {3});
  BOOST_TEST(where(first, x, y).to_vector<int64_t>() == (std::vector<int64_t>{large, 1 - large, 7}),
             boost::test_tools::per_element());
  BOOST_TEST(!requires_grad(where(first, x, y)));
}

// The mask is a constant of the derivative: x may require a gradient.
BOOST_AUTO_TEST_CASE(where_chooses_values_and_gradients) {
  Tensor x = from_values({-1, 2, NAN}, {3}), zero = zeros({});
  require_grad(x);
  Tensor y = where(x > 0, x, zero);
  BOOST_TEST(is_close(y.to_vector<double>(), {0, 2, 0}, 0));
  backward(sum(y));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {0, 1, 0}, 0));
}

BOOST_AUTO_TEST_CASE(mistakes_are_named) {
  Tensor x = zeros({3}), mask = zeros({3}, DType::u8);
  BOOST_TEST(throws_with([&] { eq(x, zeros({3}, DType::f64)); }, "[eq] the inputs are f32 and f64"));
  BOOST_TEST(throws_with([&] { gt(x, zeros({2})); }, "[gt]"));
  BOOST_TEST(throws_with([&] { gt(mask, 0.5); }, "[gt] compares a tensor of u8 with 0.5"));
  BOOST_TEST(throws_with([&] { where(x, x, x); }, "[where] needs a mask of u8, got f32; comparisons"));
  BOOST_TEST(throws_with([&] { where(mask, x, zeros({3}, DType::f64)); }, "[where] the inputs are f32 and f64"));
}

BOOST_AUTO_TEST_SUITE_END()
