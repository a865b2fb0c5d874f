#include "apps/train/log/weight_hashes.h"

#include <boost/test/unit_test.hpp>

#include "tests/apps/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::apps;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(weight_hashes)

namespace {
using Hashes = std::map<int64_t, uint32_t>;
const std::string kTwo = "step,crc32c\n1,00000001\n2,0a1b2c3d\n";
}  // namespace

BOOST_AUTO_TEST_CASE(a_resume_cuts_off_later_rows_and_what_a_kill_tore) {
  const Scratch scratch;
  const auto file = scratch / "weights.csv";
  for (const char* rest : {"", "3,0a1b", "2,0a1b2c3d", "3,5511ad8f\n4,", "3,00000003\n4,00000004\n"}) {
    write(file, kTwo + rest);
    WeightHashes(file, 2).append(3, 7);
    BOOST_TEST(slurp(file) == kTwo + "3,00000007\n", rest);
  }
  write(file, "step,crc");
  WeightHashes(file, 0).append(1, 1);
  BOOST_TEST(slurp(file) == "step,crc32c\n1,00000001\n");
}

BOOST_AUTO_TEST_CASE(an_unfinished_last_row_is_none) {
  const Scratch scratch;
  const auto file = scratch / "weights.csv";
  for (const char* rest : {"", "3,0a1b", "3,0a1b2c3d", "3"}) {
    write(file, kTwo + rest);
    BOOST_TEST((read_weight_hashes(file) == Hashes{{1, 1}, {2, 0x0a1b2c3d}}), rest);
  }
  write(file, kTwo + "3,0a1b\n");
  BRAID_CHECK_FAILS(read_weight_hashes(file), ErrorKind::input, "line 4 of ");
}

BOOST_AUTO_TEST_SUITE_END()
