#include "braid/models/data/sampler.h"

#include <boost/test/unit_test.hpp>
#include <set>

#include "tests/support/throws.h"
using namespace braid;

BOOST_AUTO_TEST_SUITE(text_sampler)

using models::text::Sampler;

BOOST_AUTO_TEST_CASE(every_epoch_is_a_bijection) {
  for (int64_t n = 1; n <= 300; ++n)
    for (const int64_t epoch : {0, 1, 77}) {
      std::vector<int> seen(static_cast<size_t>(n), 0);
      for (int64_t p = 0; p < n; ++p) ++seen.at(static_cast<size_t>(Sampler(n, 5).index(epoch, p)));
      for (const int times : seen) BOOST_REQUIRE_EQUAL(times, 1);
    }
  for (const int64_t n : {4095, 4096, 4097, 65537, 200003}) {
    std::vector<bool> seen(static_cast<size_t>(n), false);
    const Sampler s(n, 9);
    for (int64_t p = 0; p < n; ++p) {
      const auto i = static_cast<size_t>(s.index(3, p));
      BOOST_REQUIRE(!seen.at(i));
      seen[i] = true;
    }
  }
}

BOOST_AUTO_TEST_CASE(huge_sizes_stay_inside) {
  for (const int64_t n : {int64_t{1} << 40, (int64_t{1} << 40) + 1, INT64_MAX}) {
    const Sampler s(n, 1);
    std::set<int64_t> seen;
    for (int64_t p = 0; p < 1000; ++p) {
      const int64_t i = s.index(0, n - 1 - p);
      BOOST_REQUIRE(i >= 0 && i < n);
      seen.insert(i);
    }
    BOOST_TEST(seen.size() == 1000u);
  }
}

BOOST_AUTO_TEST_CASE(seeds_and_epochs_differ_and_nothing_is_remembered) {
  const int64_t n = 1000;
  const Sampler a(n, 1), b(n, 2);
  int same_epoch = 0, same_seed = 0, in_place = 0;
  for (int64_t p = 0; p < n; ++p) {
    same_epoch += a.index(0, p) == a.index(1, p);
    same_seed += a.index(0, p) == b.index(0, p);
    in_place += a.index(0, p) == p;
    BOOST_TEST(a.at(2 * n + p) == a.index(2, p));
  }
  // Random permutations agree in one place on average.
  BOOST_TEST(same_epoch < 10);
  BOOST_TEST(same_seed < 10);
  BOOST_TEST(in_place < 10);
  const int64_t first = a.index(4, 17);
  for (int i = 0; i < 5; ++i) a.index(i, i);
  BOOST_TEST(a.index(4, 17) == first);
  BOOST_TEST(Sampler(n, 1).index(4, 17) == first);
}

// Over many epochs every sample visits every place about equally often, also where halves are one or two bits.
BOOST_AUTO_TEST_CASE(small_orders_are_even) {
  const int epochs = 20000;
  for (const int64_t n : {2, 3, 4, 5, 7, 10, 16, 17}) {
    std::vector<int> count(static_cast<size_t>(n * n), 0);
    const Sampler s(n, 3);
    for (int e = 0; e < epochs; ++e)
      for (int64_t p = 0; p < n; ++p) ++count[static_cast<size_t>(p * n + s.index(e, p))];
    const double expected = static_cast<double>(epochs) / static_cast<double>(n);
    for (const int c : count) BOOST_TEST(std::abs(c - expected) < 6 * std::sqrt(expected), "n = " << n);
  }
}

// The order is part of a run's identity: changing it would break every resume.
BOOST_AUTO_TEST_CASE(the_order_is_frozen) {
  const Sampler s(10, 42);
  std::vector<int64_t> order;
  for (int64_t p = 0; p < 10; ++p) order.push_back(s.index(0, p));
  const std::vector<int64_t> expected{5, 0, 7, 1, 2, 8, 9, 6, 3, 4};
  BOOST_TEST(order == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(rejects_what_is_out_of_range) {
  BRAID_CHECK_FAILS(Sampler(0, 1), ErrorKind::misuse, "at least one sample, got 0");
  BRAID_CHECK_FAILS(Sampler(5, 1).index(0, 5), ErrorKind::misuse, "index 5 is outside of [0, 5)");
  BRAID_CHECK_FAILS(Sampler(5, 1).index(-1, 0), ErrorKind::misuse, "epoch");
}

BOOST_AUTO_TEST_SUITE_END()
