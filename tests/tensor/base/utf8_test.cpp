#include "braid/tensor/base/utf8.h"

#include <boost/test/unit_test.hpp>
using namespace braid;

BOOST_AUTO_TEST_SUITE(text_utf8)

BOOST_AUTO_TEST_CASE(every_code_point_has_its_length_and_every_cut_is_a_beginning) {
  for (uint32_t c = 0; c <= 0x10FFFF; c += c < 0x3000 ? 1 : 61) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string s;
    const auto tail = [&](uint32_t shift) { s += static_cast<char>(0x80 | (c >> shift & 63)); };
    if (c < 0x80) {
      s += static_cast<char>(c);
    } else if (c < 0x800) {
      s += static_cast<char>(0xC0 | c >> 6), tail(0);
    } else if (c < 0x10000) {
      s += static_cast<char>(0xE0 | c >> 12), tail(6), tail(0);
    } else {
      s += static_cast<char>(0xF0 | c >> 18), tail(12), tail(6), tail(0);
    }
    bool ok = detail::utf8_prefix(s + "z") == static_cast<int>(s.size());
    for (size_t cut = 0; cut < s.size(); ++cut) ok = ok && detail::utf8_prefix(s.substr(0, cut)) == 0;
    BOOST_REQUIRE_MESSAGE(ok, "U+" << std::hex << c);
  }
}

BOOST_AUTO_TEST_CASE(invalid_forms) {
  BOOST_TEST(detail::utf8_prefix("\x80") == -1);              // continuation first
  BOOST_TEST(detail::utf8_prefix("\xC0\x80") == -1);          // overlong
  BOOST_TEST(detail::utf8_prefix("\xE0\x80\x80") == -1);      // overlong
  BOOST_TEST(detail::utf8_prefix("\xED\xA0\x80") == -1);      // surrogate
  BOOST_TEST(detail::utf8_prefix("\xF4\x90\x80\x80") == -1);  // above U+10FFFF
  BOOST_TEST(detail::utf8_prefix("\xE2\x82z") == -2);         // broken off after two good bytes
  BOOST_TEST(detail::utf8_prefix("\xF5") == -1);
  BOOST_TEST(detail::replace_invalid_utf8("a\xE2\x82z\xFF\xC3") == "a\uFFFDz\uFFFD\uFFFD");
}

BOOST_AUTO_TEST_CASE(characters_that_change_the_direction_are_shown) {
  BOOST_TEST(detail::show_bidi_controls("a\u202Ebc\u202C \u05D0 \u2026\u200B") ==
             "a\\u202ebc\\u202c \u05D0 \u2026\u200B");
  BOOST_TEST(detail::show_bidi_controls("\u061C\u200E\u200F\u202A\u202B\u202D\u2066\u2067\u2068\u2069") ==
             "\\u061c\\u200e\\u200f\\u202a\\u202b\\u202d\\u2066\\u2067\\u2068\\u2069");
  BOOST_TEST(detail::show_bidi_controls("\xE2\x80") == "\xE2\x80");
  BOOST_TEST(detail::show_bidi_controls("") == "");
}

BOOST_AUTO_TEST_CASE(complete_texts) {
  BOOST_TEST(detail::valid_utf8("plain"));
  BOOST_TEST(detail::valid_utf8("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"));
  for (const char* bad : {"\xFF", "\xC3", "\xC0\xAF", "\xE2\x82", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE0\x80\x80"})
    BOOST_TEST(!detail::valid_utf8(bad));
}

BOOST_AUTO_TEST_CASE(checker_does_not_care_where_pieces_are_cut) {
  const std::string good = "aä€😀z", bad = "aä€\xF0\x9F\x98z";
  for (size_t i = 0; i <= good.size(); ++i)
    for (size_t j = i; j <= good.size(); ++j) {
      detail::Utf8Checker c;
      BOOST_TEST((c.feed(good.substr(0, i)) && c.feed(good.substr(i, j - i)) && c.feed(good.substr(j)) && c.finish()));
    }
  for (size_t i = 0; i <= bad.size(); ++i) {
    detail::Utf8Checker c;
    BOOST_TEST(!(c.feed(bad.substr(0, i)) && c.feed(bad.substr(i))));
    BOOST_TEST(c.error_byte() == 6);
  }
  detail::Utf8Checker c;
  BOOST_TEST(c.feed("a\xE2\x82"));
  BOOST_TEST(!c.finish());
  BOOST_TEST(c.error_byte() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
