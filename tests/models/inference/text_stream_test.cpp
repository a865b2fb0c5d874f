#include "braid/models/inference/text_stream.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/throws.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(text_stream)

namespace {

const models::text::ByteTokenizer kTokenizer;

struct Pieces {
  std::string text;  // joined
  std::vector<std::string> each;
  bool stopped = false;
};

Pieces stream(const std::string& bytes, const std::vector<std::string>& stops) {
  models::TextStream text(kTokenizer, stops);
  Pieces out;
  for (const char byte : bytes) {
    out.each.push_back(text.push(static_cast<uint8_t>(byte)));
    out.text += out.each.back();
  }
  out.text += text.finish();
  out.stopped = text.stopped();
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(text_that_may_become_a_stop_string_is_held_back) {
  const Pieces p = stream("ab##c###d", {"###"});
  BOOST_TEST(p.text == "ab##c");
  BOOST_TEST(p.stopped);
  BOOST_TEST(p.each == (std::vector<std::string>{"a", "b", "", "", "##c", "", "", "", ""}),
             boost::test_tools::per_element());
  const Pieces open = stream("ab##", {"###"});  // it did not become one
  BOOST_TEST(open.text == "ab##");
  BOOST_TEST(!open.stopped);
}

BOOST_AUTO_TEST_CASE(the_first_stop_string_ends_the_text) {
  BOOST_TEST(stream("one two", {"two", "ne"}).text == "o");
  BOOST_TEST(stream("xab", {"ab", "b"}).text == "x");
  BOOST_TEST(stream("aaab", {"aab"}).text == "a");
  BOOST_TEST(stream("no stop", {"stopped", "x"}).text == "no stop");
  BOOST_TEST(stream("", {"a"}).text == "");
  BOOST_TEST(stream("text", {}).text == "text");
}

BOOST_AUTO_TEST_CASE(nothing_follows_a_stop_string) {
  models::TextStream text(kTokenizer, {"b"});
  BOOST_TEST(text.push('a') == "a");
  BOOST_TEST(text.push('b') == "");
  BOOST_TEST(text.stopped());
  BOOST_TEST(text.push('c') == "");
  BOOST_TEST(text.finish() == "");
}

BOOST_AUTO_TEST_CASE(characters_are_complete_and_bytes_that_are_none_are_replaced) {
  const Pieces p = stream("\xc3\xa9\xe2\x82\xac!", {});  // e acute, euro
  BOOST_TEST(p.each == (std::vector<std::string>{"", "\xc3\xa9", "", "", "\xe2\x82\xac", "!"}),
             boost::test_tools::per_element());
  BOOST_TEST(stream("a\xe2\x82", {}).text == "a\xef\xbf\xbd");  // cut in the middle
  BOOST_TEST(stream("\xff z", {}).text == "\xef\xbf\xbd z");
  const Pieces stop = stream("a\xc3\xa9\xc3\xa8", {"\xc3\xa8"});  // a stop string of two tokens that share a byte
  BOOST_TEST(stop.text == "a\xc3\xa9");
  BOOST_TEST(stop.stopped);
}

BOOST_AUTO_TEST_CASE(specials_are_left_out_and_empty_stops_are_an_error) {
  models::TextStream text(kTokenizer, {});
  BOOST_TEST(text.push('a') + text.push(kTokenizer.eos_id()) + text.push('b') == "ab");
  BRAID_CHECK_FAILS(models::TextStream(kTokenizer, {"x", ""}), ErrorKind::setting, "a stop string is empty");
}

// At every cut of the bytes into tokens, and whatever the stops: the pieces joined are the text before the first stop.
BOOST_AUTO_TEST_CASE(pieces_joined_are_the_text_before_the_first_stop) {
  uint32_t state = 1;
  const auto below = [&](uint32_t n) { return (state = state * 1664525u + 1013904223u) / 65536u % n; };
  for (int round = 0; round < 500; ++round) {
    std::string bytes;
    for (uint32_t n = below(30); n > 0; --n) bytes += static_cast<char>('a' + below(3));
    std::vector<std::string> stops(1 + below(2));
    for (std::string& stop : stops)
      for (uint32_t n = 1 + below(4); n > 0; --n) stop += static_cast<char>('a' + below(3));
    size_t end = std::string::npos;  // of the stop that is complete first
    size_t cut = bytes.size();
    for (size_t at = 0; at < bytes.size() && end == std::string::npos; ++at) {
      for (const std::string& stop : stops) {
        if (!bytes.substr(0, at + 1).ends_with(stop)) continue;
        end = at;
        cut = std::min(cut, at + 1 - stop.size());
      }
    }
    const Pieces p = stream(bytes, stops);
    BOOST_TEST(p.text == bytes.substr(0, cut), bytes << " with " << stops[0]);
    BOOST_TEST(p.stopped == (end != std::string::npos));
  }
}

BOOST_AUTO_TEST_SUITE_END()
