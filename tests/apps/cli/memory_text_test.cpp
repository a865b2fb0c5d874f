#include "apps/cli/memory_text.h"

#include <boost/test/unit_test.hpp>

using namespace braid;

BOOST_AUTO_TEST_SUITE(memory_text)

BOOST_AUTO_TEST_CASE(bytes_in_words) {
  BOOST_TEST(apps::bytes_text(0) == "0.0 MB");
  BOOST_TEST(apps::bytes_text(12.34e6) == "12.3 MB");
  BOOST_TEST(apps::bytes_text(1.5e9) == "1.50 GB");
}

BOOST_AUTO_TEST_CASE(a_peak_by_use) {
  MemoryByUse memory;
  memory.at_peak = {4'000'000, 1'000'000, 0, 20'000'000, 0, 0};
  memory.most = {4'000'000, 4'000'000, 0, 20'000'000, 3'000'000, 0};
  BOOST_TEST(
      apps::peak_text(memory) ==
      "25.0 MB: weights 4.0 MB, gradients 1.0 MB (at most 4.0 MB), activations 20.0 MB, workspace 0.0 MB (at most "
      "3.0 MB)");
}

BOOST_AUTO_TEST_SUITE_END()
