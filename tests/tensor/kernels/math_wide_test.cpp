#include "braid/tensor/kernels/math_wide.h"

#include <boost/test/unit_test.hpp>
#include <vector>

#include "braid/tensor/kernels/math_formulas.h"
#include "tests/support/ulps.h"

using namespace braid;
using test::ulps, test::worst;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();
constexpr double kBound = 0.51;  // of a result rounded once from f64

using One = float (*)(float);
using OneExact = double (*)(double);
struct FunctionOfOne {
  const char* name;
  One got;
  OneExact want;
  float largest = kInf;  // argument
  double bound = kBound;
};
const FunctionOfOne kOfOne[] = {
    {"exp2", math_wide::exp2, std::exp2},
    {"log2", math_wide::log2, std::log2},
    {"log10", math_wide::log10, std::log10},
    {"expm1", math_wide::expm1, std::expm1},
    {"log1p", math_wide::log1p, std::log1p},
    {"sinh", math_wide::sinh, std::sinh},
    {"cosh", math_wide::cosh, std::cosh},
    {"asinh", math_wide::asinh, std::asinh},
    {"acosh", math_wide::acosh, std::acosh},
    {"atanh", math_wide::atanh, std::atanh},
    {"atan", math_wide::atan, std::atan, kInf, 2},
    {"asin", math_wide::asin, std::asin},
    {"acos", math_wide::acos, std::acos},
    {"sin", math_wide::sin, std::sin, math_wide::kLargestAngle},
    {"cos", math_wide::cos, std::cos, math_wide::kLargestAngle},
    {"tan", math_wide::tan, std::tan, math_wide::kLargestAngle},
};

using Two = float (*)(float, float);
using TwoExact = double (*)(double, double);
struct FunctionOfTwo {
  const char* name;
  Two got;
  TwoExact want;
};
const FunctionOfTwo kOfTwo[] = {{"pow", math_wide::pow, std::pow},
                                {"atan2", math_wide::atan2, std::atan2},
                                {"hypot", math_wide::hypot, std::hypot}};

// Limits of the type, zeros, integers odd and even, neighbours of 1, and numbers between them of all magnitudes.
std::vector<float> arguments() {
  std::vector<float> all = {kInf,           kNan,          0,       1e-45f,        0x1p-126f, kMax,
                            0x1.fffffep-1f, 0x1.000002p0f, 0x1p24f, 0x1.fffffep23f};
  for (int i = 1; i < 40; ++i) all.push_back(static_cast<float>(i));
  for (int i = 1; i < 40; ++i) all.push_back(0.37f * static_cast<float>(i));
  for (uint32_t u = 0; u < 0x7f800000u; u += 3000017) all.push_back(std::bit_cast<float>(u));
  const size_t half = all.size();
  for (size_t i = 0; i < half; ++i) all.push_back(-all[i]);
  return all;
}

bool same(float got, double want) {  // signs of zeros too
  const auto rounded = static_cast<float>(want);
  return std::isnan(got) ? std::isnan(want) : got == rounded && std::signbit(got) == std::signbit(rounded);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kernel_math_wide)

BOOST_AUTO_TEST_CASE(functions_of_one_are_rounded_once) {
  for (const FunctionOfOne& f : kOfOne) {
    BOOST_TEST_CONTEXT(f.name) {
      const float largest = std::fmin(f.largest, kMax);
      BOOST_TEST(worst(f.got, f.want, -largest, largest) < f.bound);
      BOOST_TEST(worst(f.got, f.want, -4.f, 4.f) < f.bound);
      for (const float x : {kInf, -kInf, kNan, 0.f, -0.f, 1.f, -1.f, 2.f, -2.f, 1e-45f, -1e-45f}) {
        if (std::isinf(x) && f.largest < kInf) continue;
        BOOST_TEST_CONTEXT(x) BOOST_TEST(same(f.got(x), f.want(static_cast<double>(x))));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(functions_of_two_are_rounded_once) {
  const std::vector<float> all = arguments();
  for (const FunctionOfTwo& f : kOfTwo) {
    double error = 0;
    int64_t other_signs = 0;
    for (const float x : all) {
      for (const float y : all) {
        const double want = f.want(static_cast<double>(x), static_cast<double>(y));
        const float got = f.got(x, y);
        error = std::fmax(error, ulps(got, want));
        if (got == 0 && static_cast<float>(want) == 0 && std::signbit(got) != std::signbit(want)) ++other_signs;
      }
    }
    BOOST_TEST_CONTEXT(f.name) {
      BOOST_TEST(error < kBound);
      BOOST_TEST(other_signs == 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(remainders_are_exact) {
  int64_t checked = 0, wrong = 0;
  for (const float x : arguments()) {
    for (const float y : arguments()) {
      if (!math_wide::quotient_is_exact(x, y)) continue;
      ++checked;
      if (!same(math_wide::fmod(x, y), std::fmod(x, y))) ++wrong;
    }
  }
  BOOST_TEST(checked > 10000);
  BOOST_TEST(wrong == 0);
}

// value() leaves arguments out of the range of the formula to the C library.
BOOST_AUTO_TEST_CASE(any_argument_has_a_value) {
  using math_functions::value;
  for (const float x : {0x1p21f, -0x1p40f, kMax}) {
    BOOST_TEST(ulps(value<MathOp::sin>(x), std::sin(double{x})) < 1);
    BOOST_TEST(ulps(value<MathOp::cos>(x), std::cos(double{x})) < 1);
    BOOST_TEST(ulps(value<MathOp::tan>(x), std::tan(double{x})) < 1);
  }
  BOOST_TEST(std::isnan(value<MathOp::sin>(kInf)));
  for (const float x : arguments())
    for (const float y : arguments()) {
      if (same(value<MathOp2::fmod>(x, y), std::fmod(x, y))) continue;
      BOOST_TEST_CONTEXT("fmod of " << x << " and " << y) BOOST_TEST(false);
    }
}

BOOST_AUTO_TEST_SUITE_END()
