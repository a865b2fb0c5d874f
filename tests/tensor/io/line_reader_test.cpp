#include "braid/tensor/io/line_reader.h"

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>

#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(io_line_reader)

// Lines that lie in one block, across several, and end where a block ends.
BOOST_AUTO_TEST_CASE(lines_have_their_place_in_the_file) {
  constexpr size_t kBlock = 1 << 20;
  const TempFolder folder;
  const std::vector<std::string> expected = {"a", "", std::string(kBlock - 4, 'b'), std::string(3 * kBlock, 'c'),
                                             "last, no end"};
  std::string text;
  for (const std::string& line : expected) text += line + (&line == &expected.back() ? "" : "\n");
  io::LineReader lines(folder.write("text", text));
  int64_t at = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    BOOST_REQUIRE(lines.next());
    const bool last = i + 1 == expected.size();
    BOOST_TEST((lines.text() == expected[i]));
    BOOST_TEST(lines.complete() == !last);
    BOOST_TEST(lines.number() == static_cast<int64_t>(i + 1));
    BOOST_TEST(lines.begin() == at);
    at += static_cast<int64_t>(expected[i].size()) + (last ? 0 : 1);
    BOOST_TEST(lines.end() == at);
  }
  BOOST_TEST(!lines.next());
  BOOST_TEST(!io::LineReader(folder.write("empty", "")).next());
}

BOOST_AUTO_TEST_CASE(a_pipe_is_no_file) {
  const TempFolder folder;
  BOOST_REQUIRE(::mkfifo((folder / "pipe").c_str(), 0666) == 0);
  BRAID_CHECK_FAILS(io::LineReader(folder / "pipe"), ErrorKind::input, "expected a file, found a device or pipe");
}

BOOST_AUTO_TEST_SUITE_END()
