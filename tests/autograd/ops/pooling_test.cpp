#include "braid/autograd/pooling.h"

#include <boost/test/unit_test.hpp>
#include <limits>

#include "braid/autograd/composed.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(pooling)

BOOST_AUTO_TEST_CASE(indices_are_the_places_of_the_values) {
  const Tensor x = random_tensor({2, 3, 5, 6}, 1);
  const ValuesAndIndices y = max_pool2d_with_indices(x, {3, 2}, {.stride = {2, 2}, .padding = {1, 1}});
  BOOST_TEST(is_close(y.values, max_pool2d(x, {3, 2}, {.stride = {2, 2}, .padding = {1, 1}}), 0));
  BOOST_REQUIRE(str(y.indices.shape()) == "(2, 3, 3, 4)");
  const std::vector<float> pixels = x.to_vector<float>(), values = y.values.to_vector<float>();
  const std::vector<int64_t> at = y.indices.to_vector<int64_t>();
  for (size_t i = 0; i < at.size(); ++i) BOOST_TEST(pixels[i / 12 * 30 + static_cast<size_t>(at[i])] == values[i]);
}

BOOST_AUTO_TEST_CASE(ties_go_to_the_first_and_nan_is_the_largest) {
  Tensor x = from_values({1, 1, 1, 1}, {1, 1, 4});
  require_grad(x);
  backward(sum(max_pool1d(x, 2)));
  BOOST_TEST(grad(x).to_vector<double>() == (std::vector<double>{1, 0, 1, 0}), boost::test_tools::per_element());
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor y = max_pool1d(from_values({std::nan(""), inf, -inf, -inf}, {1, 1, 4}), 2);
  BOOST_TEST(std::isnan(at(y, {0, 0, 0})));
  BOOST_TEST(at(y, {0, 0, 1}) == -inf);
}

BOOST_AUTO_TEST_CASE(sequences_are_images_of_one_row) {
  const Tensor x = from_values({1, 2, 3, 4, 6, 8}, {1, 1, 6});
  const auto is = [](const Tensor& y, std::vector<double> want) { return is_close(y.to_vector<double>(), want, 1e-6); };
  BOOST_TEST(is(avg_pool1d(x, 2), {1.5, 3.5, 7}));
  BOOST_TEST(is(max_pool1d(x, 3, {.stride = 1, .padding = 1}), {2, 3, 4, 6, 8, 8}));
  BOOST_TEST(is(adaptive_avg_pool1d(x, 4), {1.5, 2.5, 5, 7}));
  BOOST_TEST(is(interpolate(x, 3), {1, 3, 6}));
  BOOST_TEST(is(max_pool1d_with_indices(x, 3).indices, {2, 5}));
}

BOOST_AUTO_TEST_CASE(means_of_large_f16) {
  const Tensor x = from_values({60000, 60000, -60000, -60000}, {1, 1, 4}, DType::f16);
  BOOST_TEST(is_close(avg_pool1d(x, 2).to_vector<double>(), {60000, -60000}, 0));
  BOOST_TEST(is_close(avg_pool1d(x, 2, {.padding = 1, .count_include_pad = false}).to_vector<double>(),
                      {60000, 0, -60000}, 0));
  const Tensor wide = interpolate(x.sliced(2, 1, 3), 4, {.mode = Interpolation::linear});
  BOOST_TEST(is_close(wide.to_vector<double>(), {60000, 30000, -30000, -60000}, 0));
}

BOOST_AUTO_TEST_CASE(a_nan_stays_in_its_interval) {
  const Tensor y = adaptive_avg_pool1d(from_values({std::nan(""), 1, 2, 4}, {1, 1, 4}), 2);
  BOOST_TEST(std::isnan(at(y, {0, 0, 0})));
  BOOST_TEST(at(y, {0, 0, 1}) == 3);
}

BOOST_AUTO_TEST_CASE(empty_and_errors) {
  BOOST_TEST(str(avg_pool2d(zeros({0, 2, 4, 4}), {2, 2}).shape()) == "(0, 2, 2, 2)");
  BOOST_TEST(throws_with([] { max_pool2d(zeros({1, 1, 4, 4}), {2, 2}, {.padding = {2, 0}}); }, "half a window"));
  BOOST_TEST(throws_with([] { avg_pool2d(zeros({4, 4}), {2, 2}); }, "(B, C, H, W)"));
  BOOST_TEST(throws_with([] { adaptive_avg_pool2d(zeros({1, 1, 4, 4}), {0, 2}); }, "at least one"));
  BOOST_TEST(throws_with([] { interpolate(zeros({1, 4, 4}), Pixels{2, 2}); }, "(B, C, H, W)"));
}

BOOST_AUTO_TEST_SUITE_END()
