#include "braid/nn/optim/clip.h"

#include <boost/test/unit_test.hpp>
#include <limits>

#include "braid/autograd/record.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::nn;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(clip)

namespace {
NamedTensor with_gradient(const std::string& name, std::initializer_list<double> gradient, DType dtype = DType::f32) {
  Shape shape{static_cast<int64_t>(gradient.size())};
  NamedTensor p{name, zeros(shape, dtype)};
  require_grad(p.value);
  set_grad(p.value, from_values(gradient, shape, dtype));
  return p;
}
}  // namespace

BOOST_AUTO_TEST_CASE(norm_over_all_parameters) {
  NamedTensor a = with_gradient("a", {1, 2}), b = with_gradient("b", {4, -2}, DType::f64), none{"c", zeros({3})};
  require_grad(none.value);
  BOOST_TEST(global_norm({a, b, none}) == 5.0);
  BOOST_TEST(global_norm({}) == 0.0);
  // Squares of f32 gradients that f32 could not hold.
  BOOST_TEST(std::fabs(global_norm({with_gradient("big", {1e30, 1e30})}) / (std::sqrt(2.0) * 1e30) - 1) < 1e-6);
}

BOOST_AUTO_TEST_CASE(factor) {
  BOOST_TEST(clip_factor(4, 1) == 0.25);
  BOOST_TEST(clip_factor(4, 2) == 0.5);
  BOOST_TEST(clip_factor(1, 1) == 1.0);
  BOOST_TEST(clip_factor(0.5, 1) == 1.0);
  BOOST_TEST(clip_factor(0, 1) == 1.0);
  BOOST_TEST(clip_factor(100, 0) == 1.0);
  BOOST_TEST(throws_with([] { clip_factor(1, -1); }, "must be at least 0"));
}

BOOST_AUTO_TEST_CASE(the_first_bad_tensor_is_named) {
  double inf = std::numeric_limits<double>::infinity();
  NamedTensor good = with_gradient("good", {1}), nan = with_gradient("block.w", {1, std::nan("")});
  NamedTensor infinite = with_gradient("head", {-inf});
  BOOST_TEST(first_not_finite({good}) == "");
  BOOST_TEST(first_not_finite({good, nan, infinite}) == "block.w");
  BOOST_TEST(first_not_finite({infinite, nan}) == "head");
  BOOST_TEST(!std::isfinite(global_norm({good, infinite})));
}

BOOST_AUTO_TEST_CASE(squared_values_are_those_of_the_copies) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<NamedTensor> all = {{"a", from_values({1, 2}, {2}, DType::f32)},
                                        {"b", from_values({3}, {1}, DType::f32)}};
  const auto sums = [&](const std::vector<Tensor>& copies) {
    Tensor y = empty({2}, DType::f64);
    sum_of_squared_values(all, y, copies);
    return y.to_vector<double>();
  };
  BOOST_TEST((sums({}) == std::vector<double>{5, 9}));
  BOOST_TEST((sums({from_values({4, 2}, {2}, DType::bf16), {}}) == std::vector<double>{20, 9}));
  BOOST_TEST((sums({{}, from_values({inf}, {1}, DType::bf16)}) == std::vector<double>{5, inf}));
  BOOST_TEST(throws_with([&] { sums({{}}); }, "1 copies do not fit 2 parameters"));
}

BOOST_AUTO_TEST_SUITE_END()
