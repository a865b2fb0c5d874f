// Draws: each number is a function of the key and of its place, and stored samples stay what they are.
#include "braid/models/data/draws.h"

#include <boost/test/unit_test.hpp>

using namespace braid;
using models::Draws;

namespace {

constexpr RandomKey kKey{3, 8};

}  // namespace

BOOST_AUTO_TEST_SUITE(draws)

BOOST_AUTO_TEST_CASE(numbers_follow_from_the_bits_of_their_places) {
  Draws draws(kKey);
  BOOST_TEST(draws.unit() == unit(random_bits(0, kKey)));
  BOOST_TEST(draws.between(-2, 6) == -2 + 8 * double(unit(random_bits(1, kKey))));
  BOOST_TEST(draws.below_by_unit(10) == int64_t(10 * double(unit(random_bits(2, kKey)))));
  BOOST_TEST(draws.below_by_remainder(10) == random_bits(3, kKey) % 10);
}

BOOST_AUTO_TEST_CASE(whole_numbers_stay_below_their_bound) {
  Draws draws(kKey);
  for (const int64_t n : {1, 2, 7, 36524}) {
    for (int i = 0; i < 1000; ++i) {
      const int64_t a = draws.below_by_unit(n), b = draws.below_by_remainder(n);
      BOOST_REQUIRE((a >= 0 && a < n && b >= 0 && b < n));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
