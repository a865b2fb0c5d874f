#include "braid/tensor/io/checksum.h"

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

BOOST_AUTO_TEST_CASE(shares_of_pieces_make_the_whole) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 91 + 5);
  const uint32_t whole = io::crc32c(text.data(), 300);
  for (int a = 0; a <= 300; a += 7) {
    for (int b = a; b <= 300; b += 11) {
      const uint32_t last = io::crc32c_share(io::crc32c(text.data() + b, 300 - b), 0);
      const uint32_t middle = io::crc32c_share(io::crc32c(text.data() + a, b - a), 300 - b);
      const uint32_t first = io::crc32c_share(io::crc32c(text.data(), a), 300 - a);
      BOOST_TEST((last ^ first ^ middle) == whole);
    }
  }
  // More than 4 GiB behind a piece: in two steps the same as in one.
  const int64_t far = (int64_t{1} << 40) + 12345;
  BOOST_TEST(io::crc32c_share(io::crc32c_share(whole, far), 6789) == io::crc32c_share(whole, far + 6789));
  BOOST_TEST(io::crc32c_share(whole, far) != whole);
}

BOOST_AUTO_TEST_SUITE_END()
