#include "apps/cli/memory_text.h"

#include <boost/test/unit_test.hpp>

using namespace braid;

BOOST_AUTO_TEST_SUITE(memory_text)

BOOST_AUTO_TEST_CASE(bytes_in_words) {
  BOOST_TEST(apps::bytes_text(0) == "0 B");
  BOOST_TEST(apps::bytes_text(12.34 * 1024 * 1024) == "12.3 MiB");
  BOOST_TEST(apps::bytes_text(1023 * 1024) == "1023 KiB");
  BOOST_TEST(apps::bytes_text(1.5 * 1024 * 1024 * 1024) == "1.50 GiB");
}

BOOST_AUTO_TEST_CASE(a_peak_by_use) {
  MemoryByUse memory{.max = {4 << 20, 4 << 20, 0, 20 << 20, 3 << 20, 0},
                     .at_peak = {4 << 20, 1 << 20, 0, 20 << 20, 0, 0}};
  BOOST_TEST(
      apps::peak_text(memory) ==
      "25.0 MiB: weights 4.00 MiB, gradients 1.00 MiB (at most 4.00 MiB), activations 20.0 MiB, workspace 0 B (at "
      "most 3.00 MiB)");
}

BOOST_AUTO_TEST_SUITE_END()
