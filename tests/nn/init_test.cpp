#include "braid/nn/init.h"

#include <boost/test/unit_test.hpp>

#include "braid/autograd/ops.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(init)

namespace {
struct Found {
  double deviation, largest;
};
Found of(const nn::Init& how, const Shape& shape) {
  const Tensor x = how.make(shape, {7, 1});
  return {std::sqrt(mean(square(x)).item()), max(reshape(abs(x), {-1}), 0).item()};
}
bool near(double found, double wanted) { return std::fabs(found - wanted) < 0.02 * wanted; }
}  // namespace

BOOST_AUTO_TEST_CASE(deviations_and_bounds_follow_the_fans) {
  const Shape shape{64, 32, 3, 3};  // fans 288 and 576
  const auto bound = [&](const nn::Init& how, double limit) {
    const Found f = of(how, shape);
    return f.largest <= limit && near(f.largest, limit) && near(f.deviation, limit / std::sqrt(3.0));
  };
  BOOST_TEST(bound(nn::Init::xavier_uniform(2), 2 * std::sqrt(6.0 / 864)));
  BOOST_TEST(bound(nn::Init::kaiming_uniform(), std::sqrt(6.0 / 288)));
  BOOST_TEST(bound(nn::Init::kaiming_uniform(1, true), std::sqrt(3.0 / 576)));
  BOOST_TEST(bound(nn::Init::kaiming_uniform(nn::Init::kLinearGain), 1 / std::sqrt(288.0)));
  BOOST_TEST(near(of(nn::Init::xavier_normal(), shape).deviation, std::sqrt(2.0 / 864)));
  BOOST_TEST(near(of(nn::Init::kaiming_normal(), shape).deviation, std::sqrt(2.0 / 288)));
}

// A normal variable within 2 deviations has a variance of 0.7737413.
BOOST_AUTO_TEST_CASE(truncated_normal_stays_within_two_deviations) {
  const Found f = of(nn::Init::truncated_normal(0.5), {200, 200});
  BOOST_TEST(f.largest <= 1);
  BOOST_TEST(f.largest > 0.98);
  BOOST_TEST(near(f.deviation, 0.5 * std::sqrt(0.7737413)));
}

BOOST_AUTO_TEST_CASE(orthogonal_rows_or_columns) {
  const Tensor wide = nn::Init::orthogonal(2).make({3, 2, 2}, {7, 1}, DType::f64);
  const Tensor rows = reshape(wide, {3, 4});
  BOOST_TEST(is_close(matmul(rows, transpose(rows)), eye(3, DType::f64) * 4, 1e-12));
  const Tensor tall = nn::Init::orthogonal().make({5, 3}, {7, 2}, DType::f64);
  BOOST_TEST(is_close(matmul(transpose(tall), tall), eye(3, DType::f64), 1e-12));
}

BOOST_AUTO_TEST_CASE(names_keys_and_errors) {
  BOOST_TEST(is_close(nn::Init::named("identity").make({2, 3}, {}).to_vector<double>(), {1, 0, 0, 0, 1, 0}, 0));
  const nn::Init how = nn::Init::named("kaiming_normal");
  BOOST_TEST(is_close(how.make({4, 4}, {1, 1}), how.make({4, 4}, {1, 1}), 0));
  BOOST_TEST(!is_close(how.make({4, 4}, {1, 1}), how.make({4, 4}, {1, 2}), 0.1));
  BOOST_TEST(throws_with([] { nn::Init::named("glorot"); }, "known: none, zeros, ones, normal"));
  BOOST_TEST(throws_with([] { nn::Init::xavier_uniform().make({3}, {}); }, "for matrices, got (3)"));
  BOOST_TEST(throws_with([] { nn::Init::orthogonal().make({3}, {}); }, "for matrices"));
}

BOOST_AUTO_TEST_SUITE_END()
