// RandomStream: each number is a function of the key and of its position, and stored samples stay what they are.
#include "braid/models/data/random_stream.h"

#include <boost/test/unit_test.hpp>

using namespace braid;

BOOST_AUTO_TEST_SUITE(random_stream)

using models::RandomStream;

namespace {

constexpr RandomKey kKey{3, 8};

}  // namespace

BOOST_AUTO_TEST_CASE(numbers_follow_from_the_bits_of_their_positions) {
  RandomStream stream(kKey);
  BOOST_TEST(stream.unit() == unit(random_bits(0, kKey)));
  BOOST_TEST(stream.between(-2, 6) == -2 + 8 * double(unit(random_bits(1, kKey))));
  BOOST_TEST(stream.below_by_unit(10) == int64_t(10 * double(unit(random_bits(2, kKey)))));
  BOOST_TEST(stream.below_by_remainder(10) == random_bits(3, kKey) % 10);
}

BOOST_AUTO_TEST_CASE(integers_stay_below_their_bound) {
  RandomStream stream(kKey);
  for (const int64_t n : {1, 2, 7, 36524}) {
    for (int i = 0; i < 1000; ++i) {
      const int64_t a = stream.below_by_unit(n), b = stream.below_by_remainder(n);
      BOOST_REQUIRE((a >= 0 && a < n && b >= 0 && b < n));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
