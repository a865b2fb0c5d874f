// Products of tiles in emulation, and, where the processor has them, by its instructions: the same bits as plain loops.
#include <boost/test/unit_test.hpp>

#include "braid/tensor/base/processor.h"

namespace braid::test {

namespace emulated_tiles {
int different_sums();
int different_byte_sums();
}  // namespace emulated_tiles
namespace tile_instructions {
int different_sums();
int different_byte_sums();
}  // namespace tile_instructions

BOOST_AUTO_TEST_SUITE(emulated_tiles_suite)

BOOST_AUTO_TEST_CASE(emulated_products_have_the_bits_of_plain_loops) {
  if (!detail::has_f16c()) return;
  BOOST_TEST(emulated_tiles::different_sums() == 0);
  BOOST_TEST(emulated_tiles::different_byte_sums() == 0);
}

#ifndef BRAID_EMULATE_AVX512  // which would run them whatever the processor has
BOOST_AUTO_TEST_CASE(instructions_have_the_same_bits) {
  if (!detail::has_amx()) {
    BOOST_TEST_MESSAGE("left out: this processor has no AMX");
    return;
  }
  BOOST_TEST(tile_instructions::different_sums() == 0);
  if (detail::has_amx_int8()) BOOST_TEST(tile_instructions::different_byte_sums() == 0);
}
#endif

BOOST_AUTO_TEST_SUITE_END()

}  // namespace braid::test
