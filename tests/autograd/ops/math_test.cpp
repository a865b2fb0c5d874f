// Functions of numbers beside the rows: limits, signs of zero, NaN, integers, masks of all types, mistakes.
#include "braid/autograd/math.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "tests/support/compare.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(math_functions)

namespace {
const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");

Tensor row(std::vector<double> values) {
  const auto n = static_cast<int64_t>(values.size());
  return from_vector(std::move(values), {n});
}
std::vector<double> list(const Tensor& x) { return x.to_vector<double>(); }
std::vector<double> slope(Tensor (*f)(const Tensor&), std::vector<double> at) {
  Tensor x = row(std::move(at));
  require_grad(x);
  return list(grad(sum(f(x)), {x})[0]);
}
}  // namespace

BOOST_AUTO_TEST_CASE(remainders_have_the_sign_that_they_say) {
  const Tensor x = row({5, -5, 5, -5, 6, -6}), y = row({3, 3, -3, -3, 3, 3});
  BOOST_TEST(list(fmod(x, y)) == (std::vector<double>{2, -2, 2, -2, 0, -0.}), boost::test_tools::per_element());
  BOOST_TEST(list(x % y) == (std::vector<double>{2, 1, -1, -2, 0, 0}), boost::test_tools::per_element());
  BOOST_TEST(list(floor_divide(x, y)) == (std::vector<double>{1, -2, -2, 1, 2, -2}), boost::test_tools::per_element());
  // 0.3 / 0.1 is rounded up to 3 though 0.3 < 3 * 0.1: Python says 2.
  BOOST_TEST(list(floor_divide(row({0.3}), row({0.1})))[0] == 2);
  BOOST_TEST(
      list(floor_divide(row({1, -1, 1, -1}), row({inf, inf, -inf, -inf}))) == (std::vector<double>{0, -1, -1, 0}),
      boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(halves_round_to_even) {
  BOOST_TEST(list(round(row({0.5, 1.5, 2.5, -0.5, -1.5}))) == (std::vector<double>{0, 2, 2, 0, -2}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(special_values) {
  const Tensor x = row({nan, inf, -inf, 0, -0., 1});
  BOOST_TEST(list(isnan(x)) == (std::vector<double>{1, 0, 0, 0, 0, 0}), boost::test_tools::per_element());
  BOOST_TEST(list(isinf(x)) == (std::vector<double>{0, 1, 1, 0, 0, 0}), boost::test_tools::per_element());
  BOOST_TEST(list(isfinite(x)) == (std::vector<double>{0, 0, 0, 1, 1, 1}), boost::test_tools::per_element());
  BOOST_TEST(list(signbit(row({inf, -inf, 0., -0., -1}))) == (std::vector<double>{0, 1, 0, 1, 1}),
             boost::test_tools::per_element());
  const std::vector<double> signs = list(sign(x));
  BOOST_TEST(std::isnan(signs[0]));
  BOOST_TEST(signs[1] == 1);
  BOOST_TEST(signs[2] == -1);
  BOOST_TEST(signs[4] == 0);
  BOOST_TEST(list(nan_to_num(x, 7, 8, -8)) == (std::vector<double>{7, 8, -8, 0, 0, 1}),
             boost::test_tools::per_element());
  BOOST_TEST(list(softplus(row({-inf, inf, 1000}))) == (std::vector<double>{0, inf, 1000}),
             boost::test_tools::per_element());
  BOOST_TEST(list(logaddexp(row({-inf, inf, 1000}), row({-inf, inf, 1000}))) ==
                 (std::vector<double>{-inf, inf, 1000 + std::log(2)}),
             boost::test_tools::per_element());
  BOOST_TEST(list(elu(row({1000, -1000}), 1)) == (std::vector<double>{1000, -1}), boost::test_tools::per_element());
}

// Where a formula by composition would give NaN or half of the slope.
BOOST_AUTO_TEST_CASE(slopes_at_the_ends) {
  BOOST_TEST(slope(softplus, {0, -inf, inf}) == (std::vector<double>{0.5, 0, 1}), boost::test_tools::per_element());
  BOOST_TEST(slope(mish, {0})[0] == std::tanh(std::log(2)), boost::test_tools::tolerance(1e-15));
  BOOST_TEST(slope(floor, {1.5, 2})[1] == 0);
  Tensor x = row({0, 0}), y = row({0, 3});
  require_grad(x);
  require_grad(y);
  const std::vector<Tensor> g = grad(sum(hypot(x, y)), {x, y});
  BOOST_TEST(list(g[0]) == (std::vector<double>{0, 0}), boost::test_tools::per_element());
  BOOST_TEST(list(g[1]) == (std::vector<double>{0, 1}), boost::test_tools::per_element());
  const std::vector<Tensor> p = grad(sum(pow(x, y)), {x, y});  // 0^0 = 1 and 0^3
  BOOST_TEST(list(p[0]) == (std::vector<double>{0, 0}), boost::test_tools::per_element());
  BOOST_TEST(list(p[1]) == (std::vector<double>{0, 0}), boost::test_tools::per_element());
  const std::vector<Tensor> l = grad(sum(logaddexp(x, x)), {x});
  BOOST_TEST(list(l[0]) == (std::vector<double>{1, 1}), boost::test_tools::per_element());
}

// By the quotient of the type, 1 / 0.1 = 10 and 0.3 / 0.1 = 3.
BOOST_AUTO_TEST_CASE(remainders_fall_by_the_exact_quotient) {
  Tensor x = row({1, 0.3, 5.5, -5.5}), y = row({0.1, 0.1, 2, 2});
  require_grad(y);
  BOOST_TEST(list(grad(sum(remainder(x, y)), {y})[0]) == (std::vector<double>{-9, -2, -2, 3}),
             boost::test_tools::per_element());
  BOOST_TEST(list(grad(sum(fmod(x, y)), {y})[0]) == (std::vector<double>{-9, -2, -2, 2}),
             boost::test_tools::per_element());
}

// x^0 has no slope in x, but its slope in y has one: 1 / x. 0^-1 is infinite, and has none in y.
BOOST_AUTO_TEST_CASE(powers_of_exponents_without_a_sign) {
  Tensor x = row({2, -4, 0}), y = row({0, 0, -1});
  require_grad(x);
  require_grad(y);
  const std::vector<Tensor> first = grad(sum(pow(x, y)), {x, y}, {.create_graph = true});
  BOOST_TEST(list(first[0])[0] == 0);
  BOOST_TEST(list(first[1])[2] == 0);
  const std::vector<double> mixed = list(grad(sum(first[0]), {y})[0]);
  BOOST_TEST(mixed[0] == 0.5);
}

BOOST_AUTO_TEST_CASE(equal_infinities_have_no_gradient_of_logaddexp) {
  Tensor x = row({-inf, inf, -inf}), y = row({-inf, inf, 0});
  require_grad(x);
  require_grad(y);
  const std::vector<Tensor> first = grad(sum(logaddexp(x, y)), {x, y}, {.create_graph = true});
  BOOST_TEST(list(first[0]) == (std::vector<double>{0, 0, 0}), boost::test_tools::per_element());
  BOOST_TEST(list(first[1]) == (std::vector<double>{0, 0, 1}), boost::test_tools::per_element());
  BOOST_TEST(list(grad(sum(first[0]), {x})[0]) == (std::vector<double>{0, 0, 0}), boost::test_tools::per_element());
}

// The squares of 300 and more are infinite in f16: slopes were 0, or NaN.
BOOST_AUTO_TEST_CASE(slopes_of_f16_are_computed_in_f32) {
  const std::pair<Tensor (*)(const Tensor&), double> rows[] = {
      {asinh, 1 / std::sqrt(90001.)}, {acosh, 1 / std::sqrt(89999.)}, {atan, 1 / 90001.}, {gelu_tanh, 1}};
  for (const auto& [f, want] : rows) {
    Tensor x = full({1}, 300, DType::f16);
    require_grad(x);
    for (const bool again : {false, true})
      BOOST_TEST(is_close(list(grad(sum(f(x)), {x}, {.create_graph = again})[0]), {want}, 3e-3));
  }
}

BOOST_AUTO_TEST_CASE(small_numbers_keep_their_digits) {
  BOOST_TEST(list(log1p(row({1e-20})))[0] == 1e-20);
  BOOST_TEST(list(expm1(row({1e-20})))[0] == 1e-20);
  BOOST_TEST(list(hypot(row({3e200}), row({4e200})))[0] == 5e200, boost::test_tools::tolerance(1e-15));
}

BOOST_AUTO_TEST_CASE(masks_of_every_type) {
  for (const DType type : {DType::u8, DType::i32, DType::i64, DType::f32, DType::bf16}) {
    const Tensor a = row({0, 0, 2, 3}).to(type), b = row({0, 5, 0, 1}).to(type);
    BOOST_TEST_CONTEXT(str(type)) {
      BOOST_TEST(str((a & b).dtype()) == "u8");
      BOOST_TEST(list(a & b) == (std::vector<double>{0, 0, 0, 1}), boost::test_tools::per_element());
      BOOST_TEST(list(a | b) == (std::vector<double>{0, 1, 1, 1}), boost::test_tools::per_element());
      BOOST_TEST(list(a ^ b) == (std::vector<double>{0, 1, 1, 0}), boost::test_tools::per_element());
      BOOST_TEST(list(logical_not(a)) == (std::vector<double>{1, 1, 0, 0}), boost::test_tools::per_element());
    }
  }
  BOOST_TEST(list(isfinite(row({1, 2}).to(DType::i64))) == (std::vector<double>{1, 1}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(closeness) {
  const Tensor x = row({1, inf, -inf, nan}), near = row({1 + 1e-9, inf, -inf, nan});
  BOOST_TEST(list(isclose(x, near)) == (std::vector<double>{1, 1, 1, 0}), boost::test_tools::per_element());
  BOOST_TEST(!allclose(x, near));
  BOOST_TEST(allclose(x, near, 1e-5, 1e-8, true));
  BOOST_TEST(!allclose(row({1}), row({inf})));
  const auto ints = [](std::vector<int64_t> values) { return from_vector(values, {std::ssize(values)}); };
  const int64_t big = int64_t{1} << 60, least = std::numeric_limits<int64_t>::min(), most = -(least + 1);
  const Tensor a = ints({100000, 5, big + 1, least, 7}), b = ints({100001, 7, big, most, 7});
  BOOST_TEST(list(isclose(a, b)) == (std::vector<double>{1, 0, 1, 0, 1}), boost::test_tools::per_element());
  BOOST_TEST(list(isclose(a, b, 0, 1)) == (std::vector<double>{1, 0, 1, 0, 1}), boost::test_tools::per_element());
  BOOST_TEST(list(isclose(a, b, 0, 0)) == (std::vector<double>{0, 0, 0, 0, 1}), boost::test_tools::per_element());
  BOOST_TEST(allclose(row({1}).to(DType::u8), row({3}).to(DType::u8), 0, 2));
  BOOST_TEST(equal(row({1, 2}), row({1, 2})));
  BOOST_TEST(!equal(row({1, 2}), row({1})));
  BOOST_TEST(!equal(row({1}), row({1}).to(DType::f32)));
  BOOST_TEST(!equal(row({nan}), row({nan})));
  BOOST_TEST(equal(row({}), row({})));
}

BOOST_AUTO_TEST_CASE(compound_assignment_rebinds_the_handle) {
  Tensor x = row({1, 2});
  require_grad(x);
  const Tensor leaf = x;
  x += row({10, 20});
  x *= 2;
  x -= 1;
  x /= row({1, 43});
  BOOST_TEST(is_close(list(x), {21, 1}, 1e-15));
  BOOST_TEST(is_close(list(leaf), {1, 2}, 0));  // nothing was written
  BOOST_TEST(is_close(list(grad(sum(x), {leaf})[0]), {2, 2. / 43}, 1e-15));
}

BOOST_AUTO_TEST_CASE(mistakes) {
  BRAID_CHECK_FAILS(sin(row({1}).to(DType::i64)), ErrorKind::misuse, "[sin] needs a floating-point tensor, got i64");
  BRAID_CHECK_FAILS(hypot(row({1}), row({1}).to(DType::f32)), ErrorKind::misuse, "[hypot]", "cast one of them");
  BRAID_CHECK_FAILS(atan2(row({1, 2}), row({1, 2, 3})), ErrorKind::misuse, "atan2");
  BRAID_CHECK_FAILS(celu(row({1}), 0), ErrorKind::misuse, "[celu] needs an alpha");
  Tensor x = row({1});
  require_grad(x);
  BRAID_CHECK_FAILS(nextafter(x, row({2})), ErrorKind::misuse, "[nextafter] has no derivative");
  BRAID_CHECK_FAILS(row({1, 2}) & row({1, 2, 3}), ErrorKind::misuse, "[logical_and]");
}

BOOST_AUTO_TEST_SUITE_END()
