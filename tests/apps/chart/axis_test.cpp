#include "apps/chart/axis.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

using namespace braid::apps;

BOOST_AUTO_TEST_SUITE(axis)

static std::string labels(const Axis& axis, int count) {
  std::string text;
  for (const Tick& tick : ticks(axis, count)) text += (text.empty() ? "" : " ") + tick.label;
  return text;
}

BOOST_AUTO_TEST_CASE(ticks_are_round_and_distinct) {
  BOOST_TEST(labels({.min = 0, .max = 1000}, 5) == "0 200 400 600 800 1000");
  BOOST_TEST(labels({.min = 1.27, .max = 5.9}, 6) == "2 3 4 5");
  BOOST_TEST(labels({.min = 0, .max = 0.001}, 4) == "0 0.00025 0.00050 0.00075 0.00100");
  BOOST_TEST(labels({.min = 0, .max = 2.2e-5}, 4) == "0 1e-5 2e-5");
  BOOST_TEST(labels({.min = 0, .max = 40000}, 4) == "0 10k 20k 30k 40k");
  BOOST_TEST(labels({.min = 0, .max = 2.5e6}, 5) == "0 0.5M 1.0M 1.5M 2.0M 2.5M");
  BOOST_TEST(labels({.min = 0, .max = 10}, 4) == "0 2.5 5.0 7.5 10.0");
  BOOST_TEST(labels({.min = 0, .max = 3, .whole = true}, 10) == "0 1 2 3");
  BOOST_TEST(labels({.min = 1.2, .max = 6, .log = true}, 5) == "2 3 4 5 6");
  BOOST_TEST(labels({.min = 0.01, .max = 100, .log = true}, 5) == "0.01 0.1 1 10 100");
}

BOOST_AUTO_TEST_CASE(ticks_stay_inside_whatever_the_range) {
  for (double low : {-3.0, 0.0, 1e-7, 2.0, 1e6})
    for (double span : {1e-6, 0.3, 7.0, 1e5, 1e10})
      for (int count : {1, 4, 12}) {
        const Axis axis{.min = low, .max = low + span};
        const auto found = ticks(axis, count);
        BOOST_TEST(found.size() <= size_t(count) + 2);
        for (const Tick& tick : found) {
          BOOST_TEST(tick.value >= axis.min - 1e-6 * span);
          BOOST_TEST(tick.value <= axis.max + 1e-6 * span);
        }
      }
}

// Ranges at the limits of doubles: neighbours, beyond 2^53, and spans that overflow.
BOOST_AUTO_TEST_CASE(ticks_end_whatever_the_doubles) {
  for (const double low : {5.0, 1e17, 1e300, -1.7e308, 0.0, 5e-324})
    for (const double high :
         std::initializer_list<double>{std::nextafter(low, 1.79e308), low * (1 + 1e-15), 1.7e308, INFINITY, low})
      for (const bool log : {false, true}) {
        const auto found = ticks({.min = low, .max = high, .log = log && low >= 1}, 6);
        BOOST_TEST(found.size() <= 14u, low << " to " << high);
      }
}

BOOST_AUTO_TEST_CASE(axes_map_ends_to_ends) {
  const Axis linear{.min = 2, .max = 4, .low = 300, .high = 100};
  BOOST_TEST(linear.at(2) == 300);
  BOOST_TEST(linear.at(3) == 200);
  BOOST_TEST(linear.at(4) == 100);
  const Axis log{.min = 1, .max = 100, .log = true, .low = 0, .high = 10};
  BOOST_TEST(std::fabs(log.at(10) - 5) < 1e-12);
}

BOOST_AUTO_TEST_SUITE_END()
