#include "braid/tensor/kernels/math.h"

#include <boost/test/unit_test.hpp>

#include "braid/tensor/kernels/pointwise_ops.h"
#include "tests/support/ulps.h"

using namespace braid;
using test::ulps, test::worst;

BOOST_AUTO_TEST_SUITE(kernel_math)

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

float fast_exp(float x) { return math::exp(x); }
float fast_log(float x) { return math::log(x); }
float fast_tanh(float x) { return math::tanh(x); }
float fast_erf(float x) { return math::erf(x); }
double exact_exp(double x) { return std::exp(x); }
double exact_log(double x) { return std::log(x); }
double exact_tanh(double x) { return std::tanh(x); }
double exact_erf(double x) { return std::erf(x); }

}  // namespace

BOOST_AUTO_TEST_CASE(exponential) {
  BOOST_TEST(worst(fast_exp, exact_exp, -87.3f, 88.72f) < 1.5);
  BOOST_TEST(math::exp(0.0f) == 1.0f);
  BOOST_TEST(math::exp(89.0f) == kInf);
  BOOST_TEST(math::exp(kInf) == kInf);
  BOOST_TEST(math::exp(-88.0f) == 0.0f);
  BOOST_TEST(math::exp(-kInf) == 0.0f);
  BOOST_TEST(math::exp(1e-40f) == 1.0f);
  BOOST_TEST(std::isnan(math::exp(kNan)));
  BOOST_TEST(std::isnan(math::exp(-kNan)));
}

// Also a NaN that carries a number in its low bits, which would be taken for an exponent.
BOOST_AUTO_TEST_CASE(every_nan_stays_one) {
  for (const uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7fc00001u, 0x7fc000ffu, 0xffffffffu}) {
    const float x = std::bit_cast<float>(bits);
    for (float (*const f)(float) : {fast_exp, fast_log, fast_tanh, fast_erf}) BOOST_TEST(std::isnan(f(x)), bits);
    BOOST_TEST(std::isnan(math::log1p_of_exp(x)));
    BOOST_TEST(std::isnan(pointwise::sigmoid(x)));
  }
}

BOOST_AUTO_TEST_CASE(logarithm) {
  BOOST_TEST(worst(fast_log, exact_log, 1e-45f, std::numeric_limits<float>::max()) < 1.5);  // subnormals too
  BOOST_TEST(worst(fast_log, exact_log, 0.5f, 2.0f) < 1.5);
  BOOST_TEST(math::log(1.0f) == 0.0f);
  BOOST_TEST(math::log(0.0f) == -kInf);
  BOOST_TEST(math::log(-0.0f) == -kInf);
  BOOST_TEST(math::log(kInf) == kInf);
  BOOST_TEST(std::isnan(math::log(-1.0f)));
  BOOST_TEST(std::isnan(math::log(-1e-45f)));
  BOOST_TEST(std::isnan(math::log(-kInf)));
  BOOST_TEST(std::isnan(math::log(kNan)));
}

BOOST_AUTO_TEST_CASE(hyperbolic_tangent) {
  BOOST_TEST(worst(fast_tanh, exact_tanh, -1e30f, 1e30f) < 2.5);
  BOOST_TEST(worst(fast_tanh, exact_tanh, -10.0f, 10.0f) < 2.5);
  BOOST_TEST(math::tanh(kInf) == 1.0f);
  BOOST_TEST(math::tanh(-kInf) == -1.0f);
  BOOST_TEST(math::tanh(0.0f) == 0.0f);
  BOOST_TEST(std::signbit(math::tanh(-0.0f)));
  BOOST_TEST(math::tanh(1e-40f) == 1e-40f);
  BOOST_TEST(std::isnan(math::tanh(kNan)));
}

BOOST_AUTO_TEST_CASE(error_function) {
  BOOST_TEST(worst(fast_erf, exact_erf, -1e30f, 1e30f) < 2.5);
  BOOST_TEST(worst(fast_erf, exact_erf, -5.0f, 5.0f) < 2.5);
  BOOST_TEST(math::erf(kInf) == 1.0f);
  BOOST_TEST(math::erf(-kInf) == -1.0f);
  BOOST_TEST(std::signbit(math::erf(-0.0f)));
  BOOST_TEST(std::isnan(math::erf(kNan)));
}

BOOST_AUTO_TEST_CASE(logarithm_of_one_plus_an_exponential) {
  auto fast = [](float a) { return math::log1p_of_exp(a); };
  BOOST_TEST(worst(
                 fast, [](double a) { return std::log1p(std::exp(-a)); }, 0.0f, 87.0f) < 2.5);
  BOOST_TEST(fast(88.0f) == 0.0f);
  BOOST_TEST(fast(kInf) == 0.0f);
  BOOST_TEST(std::isnan(fast(kNan)));
}

BOOST_AUTO_TEST_CASE(sigmoid_over_the_whole_range) {
  auto fast = [](float x) { return pointwise::sigmoid(x); };
  BOOST_TEST(worst(
                 fast, [](double x) { return 1 / (1 + std::exp(-x)); }, -87.0f, 1e30f) < 2.5);
  BOOST_TEST(fast(-1000.0f) == 0.0f);
  BOOST_TEST(fast(1000.0f) == 1.0f);
  BOOST_TEST(fast(kInf) == 1.0f);
  BOOST_TEST(fast(-kInf) == 0.0f);
  BOOST_TEST(std::isnan(fast(kNan)));
}

BOOST_AUTO_TEST_SUITE_END()
