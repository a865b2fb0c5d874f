#include <boost/test/unit_test.hpp>
#include <limits>

#include "braid/autograd.h"
#include "braid/tensor/kernels/math.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(softmax_kernels)

namespace {
constexpr double kInf = std::numeric_limits<double>::infinity();
}

BOOST_AUTO_TEST_CASE(extreme_rows) {
  for (DType t : {DType::f64, DType::f32}) {
    BOOST_TEST(is_close(softmax(from_values({1e4, 1e4}, {2}, t)).to_vector<double>(), {0.5, 0.5}, 0));
    BOOST_TEST(is_close(softmax(from_values({-1e4, 0}, {2}, t)).to_vector<double>(), {0, 1}, 0));
    BOOST_TEST(is_close(softmax(from_values({-kInf, 3, -kInf}, {3}, t)).to_vector<double>(), {0, 1, 0}, 0));
    BOOST_TEST(is_close(log_softmax(from_values({1e4, 0}, {2}, t)).to_vector<double>(), {0, -1e4}, 1e-7));
  }
}

BOOST_AUTO_TEST_CASE(log_softmax_keeps_its_digits_at_any_size) {
  for (double offset : {1e4, -1e7, 1e30}) {
    for (DType t : {DType::f32, DType::bf16}) {
      Tensor x = full({2}, offset, t);
      require_grad(x);
      Tensor y = log_softmax(x);
      BOOST_TEST(is_close(y.to_vector<double>(), {-std::log(2.0), -std::log(2.0)}, t == DType::f32 ? 1e-7 : 4e-3));
      backward(y, from_values({1, 0}, {2}, t));
      BOOST_TEST(is_close(grad(x).to_vector<double>(), {0.5, -0.5}, t == DType::f32 ? 1e-6 : 4e-3));
    }
  }
  BOOST_TEST(is_close(log_softmax(from_values({1e7, 1e7 + 1}, {2})).to_vector<double>(),
                      {-std::log(1 + std::exp(1.0)), -std::log(1 + std::exp(-1.0))}, 1e-7));
}

BOOST_AUTO_TEST_CASE(a_row_without_anything_visible_gives_zeros_and_no_gradient) {
  Tensor x = from_values({-kInf, -kInf, 1, 1}, {2, 2}, DType::f64);
  require_grad(x);
  Tensor y = softmax(x);
  BOOST_TEST(is_close(y.to_vector<double>(), {0, 0, 0.5, 0.5}, 0));
  backward(y, from_values({1, 2, 1, 0}, {2, 2}, DType::f64));
  BOOST_TEST(is_close(grad(x).to_vector<double>(), {0, 0, 0.25, -0.25}, 1e-15));
}

// log_softmax is the logarithm of softmax in these rows too.
BOOST_AUTO_TEST_CASE(rows_of_minus_infinity_have_one_rule) {
  for (const DType t : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    for (const int64_t n : {1, 5, 70}) {
      Tensor x = full({2, n}, -kInf, t);
      x.sliced(0, 1, 2).fill(3);
      require_grad(x);
      const std::vector<double> p = softmax(x).to_vector<double>();
      const Tensor y = log_softmax(x), lse = logsumexp(x, 1);
      for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
        BOOST_TEST(p[i] == 0.0);
        BOOST_TEST(y.to_vector<double>()[i] == -kInf);
        BOOST_TEST(std::fabs(y.to_vector<double>()[static_cast<size_t>(n) + i] + std::log(double(n))) < 0.02);
      }
      BOOST_TEST(lse.to_vector<double>()[0] == -kInf);
      backward(y, full({2, n}, 1, t));
      BOOST_TEST(at(grad(x), {0, 0}) == 1.0);
      zero_grad(x);
      BOOST_TEST(at(log_softmax(transpose(x), 0), {0, 0}) == -kInf);
    }
  }
  const std::vector<double> nan = log_softmax(from_values({std::nan(""), -kInf}, {2})).to_vector<double>();
  BOOST_TEST((std::isnan(nan[0]) && std::isnan(nan[1])));
}

BOOST_AUTO_TEST_CASE(nan_stays_in_its_row) {
  std::vector<double> y = softmax(from_values({std::nan(""), 1, 2, 2}, {2, 2})).to_vector<double>();
  BOOST_TEST(std::isnan(y[0]));
  BOOST_TEST(std::isnan(y[1]));
  BOOST_TEST(y[2] == 0.5);
}

BOOST_AUTO_TEST_CASE(long_rows_sum_to_one) {
  std::vector<double> values(5003);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 8 * unit(random_bits(i, {4, 4}));
  std::vector<double> y = softmax(from_vector(values, {5003}).to(DType::f32)).to_vector<double>();
  double sum = 0;
  for (double v : y) sum += v;
  BOOST_TEST(std::fabs(sum - 1) < 1e-6);
}

BOOST_AUTO_TEST_CASE(the_vectorised_exp_agrees_with_the_library) {
  for (int i = -8800; i <= 8880; ++i) {
    float x = 0.01f * static_cast<float>(i);
    double want = std::exp(static_cast<double>(x)), got = math::exp(x);
    if (want < 0x1p-126) {
      BOOST_TEST(got <= 0x1p-125);
    } else if (want > 3.4028234e38) {
      BOOST_TEST(got == kInf);
    } else {
      BOOST_TEST(std::fabs(got - want) <= 2.5e-7 * want, "exp(" << x << ") = " << got << ", expected " << want);
    }
  }
  BOOST_TEST(math::exp(-1e30f) == 0.0f);
  BOOST_TEST(std::isnan(math::exp(std::nanf(""))));
}

BOOST_AUTO_TEST_SUITE_END()
