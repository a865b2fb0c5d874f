#include "apps/cli/text.h"
#include "apps/cli/terminal_text.h"

#include <boost/test/unit_test.hpp>
#include <limits>

using namespace braid::apps;

BOOST_AUTO_TEST_SUITE(text)

BOOST_AUTO_TEST_CASE(numbers_for_people) {
  BOOST_TEST(human(5603.2, 3) == "5603");
  BOOST_TEST(human(12345, 3) == "12.3k");
  BOOST_TEST(human(1234567, 3) == "1.23M");
  BOOST_TEST(human(2.5e9, 2) == "2.5G");
  BOOST_TEST(human(0.25, 2) == "0.25");
  BOOST_TEST(human(0.0125, 2) == "0.013");
  BOOST_TEST(human(0.00012, 2) == "1.2e-04");
  BOOST_TEST(human(0, 3) == "0");
  BOOST_TEST(duration(0.44) == "0.4s");
  BOOST_TEST(duration(59.4) == "59s");
  BOOST_TEST(duration(59.6) == "1m00s");
  BOOST_TEST(duration(75) == "1m15s");
  BOOST_TEST(duration(7300) == "2h01m");
  BOOST_TEST(duration(200000) == "2d07h");
  BOOST_TEST(duration(-1) == "?");
  BOOST_TEST(duration(std::numeric_limits<double>::quiet_NaN()) == "?");
}

BOOST_AUTO_TEST_CASE(times_for_plans) {
  BOOST_TEST(time_in_words(0.2944) == "294 ms");
  BOOST_TEST(time_in_words(90) == "90.0 seconds");
  BOOST_TEST(time_in_words(7100) == "118 minutes");
  BOOST_TEST(time_in_words(12.34e6) == "143 days");
  BOOST_TEST(time_in_words(3.43e3 * 3600) == "143 days");
  BOOST_TEST(time_in_words(1e9) == "31.7 years");
  BOOST_TEST(time_in_words(-1) == "?");
}

BOOST_AUTO_TEST_CASE(shell_quoting) {
  BOOST_TEST(shell_quote("out/run-1.svg") == "out/run-1.svg");
  BOOST_TEST(shell_quote("two words") == "'two words'");
  BOOST_TEST(shell_quote("it's") == "'it'\\''s'");
  BOOST_TEST(shell_quote("") == "''");
}

BOOST_AUTO_TEST_CASE(text_that_cannot_command_a_terminal) {
  BOOST_TEST(printable("a\tb\nc") == "a\\tb\\n\nc");
  BOOST_TEST(printable("\x1B[31m\r\x7F\b", "") == "\\x1B[31m\\x0D\\x7F\\x08");
  // U+009B begins a command as Escape [ does; U+00A0 is a space.
  BOOST_TEST(terminal_text("\xC2\x9B"
                           "31m \xC2\x80\xC2\x9F\xC2\xA0") == "\\xC2\\x9B31m \\xC2\\x80\\xC2\\x9F\xC2\xA0");
  BOOST_TEST(terminal_text("two\n\tlines \xC3\xA9 \xE2\x82\xAC\n") == "two\n\tlines \xC3\xA9 \xE2\x82\xAC\n");
  BOOST_TEST(terminal_text("\xC2") == "\xEF\xBF\xBD");
}

BOOST_AUTO_TEST_SUITE_END()
