#include "tensor/io/checksum.h"

#include <boost/test/unit_test.hpp>
using namespace braid;

BOOST_AUTO_TEST_SUITE(io_checksum)

BOOST_AUTO_TEST_CASE(published_check_values) {
  BOOST_TEST(io::crc32c("123456789", 9) == 0xE3069283u);
  BOOST_TEST(io::crc32c_by_table("123456789", 9) == 0xE3069283u);
  const std::string zeros(32, '\0'), ones(32, '\xff');  // RFC 3720, B.4
  BOOST_TEST(io::crc32c(zeros.data(), 32) == 0x8A9136AAu);
  BOOST_TEST(io::crc32c(ones.data(), 32) == 0x62A8AB43u);
  BOOST_TEST(io::crc32c(nullptr, 0) == 0u);
}

BOOST_AUTO_TEST_CASE(instruction_and_table_agree_at_every_length_and_cut) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>(i * 37 + 11);
  for (int n = 0; n <= 64; ++n)
    for (int start = 0; start < 9; ++start)
      BOOST_TEST(io::crc32c(text.data() + start, n) == io::crc32c_by_table(text.data() + start, n));
  const uint32_t whole = io::crc32c(text.data(), 100);
  for (int cut = 0; cut <= 100; ++cut)
    BOOST_TEST(io::crc32c(text.data() + cut, 100 - cut, io::crc32c(text.data(), cut)) == whole);
}

BOOST_AUTO_TEST_SUITE_END()
