#include "braid/tensor/cpu/lanes.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

using namespace braid;

BOOST_AUTO_TEST_SUITE(cpu_lanes)

namespace {
constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
}

BOOST_AUTO_TEST_CASE(sums_and_maxima_by_lanes) {
  for (int64_t n : {0, 1, 15, 16, 17, 31, 32, 33, 64, 100, 1000}) {
    BOOST_TEST(cpu::lane_sum<double>(n, [](int64_t i) { return double(i) + 1; }) == double(n * (n + 1) / 2));
    for (int64_t top = 0; top < n; top += 7) {
      auto f = [top](int64_t i) { return i == top ? 5.0f : -float(i); };
      BOOST_TEST(cpu::lane_max<float>(n, f) == 5.0f);
      BOOST_TEST(std::isnan(cpu::lane_max<float>(n, [top](int64_t i) { return i == top ? kNan : float(i); })));
    }
  }
  BOOST_TEST(cpu::lane_max<float>(0, [](int64_t) { return 1.0f; }) == -kInf);
}

// 32 sums side by side from zero, then halves onto halves: models depend on these bits.
BOOST_AUTO_TEST_CASE(sums_have_the_bits_of_32_lanes_folded_in_halves) {
  for (int64_t n : {0, 1, 31, 32, 33, 63, 64, 100, 768}) {
    for (const bool zeros : {false, true}) {
      auto f = [zeros](int64_t i) { return zeros ? -0.0f : std::sin(float(i * i)) * std::exp2(float(i % 13)); };
      float acc[32] = {};
      for (int64_t i = 0; i < n; ++i) acc[i % 32] += f(i);
      for (int width = 16; width > 0; width /= 2)
        for (int l = 0; l < width; ++l) acc[l] += acc[l + width];
      const float sum = cpu::lane_sum<float>(n, f);
      BOOST_TEST(sum == acc[0], "n = " << n);
      BOOST_TEST(std::signbit(sum) == std::signbit(acc[0]), "n = " << n);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
