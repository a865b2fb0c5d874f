#include "braid/models/eval/filters.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/throws.h"

using namespace braid;
using namespace braid::models::eval;

BOOST_AUTO_TEST_SUITE(eval_filters)

namespace {
const Location kLocation{"f.jsonl", 3};
std::string apply(const std::string& filters, const std::string& text) {
  return Filters(filters, "x")(text, kLocation);
}
}  // namespace

BOOST_AUTO_TEST_CASE(each_filter_by_hand) {
  BOOST_TEST(apply("strip", " \ta b\n ") == "a b");
  BOOST_TEST(apply("lstrip", " a ") == "a ");
  BOOST_TEST(apply("rstrip", " a ") == " a");
  BOOST_TEST(apply("strip", "  ") == "");
  BOOST_TEST(apply("strip", "\u00a0\x1F\u3000a\u2003") == "a");
  BOOST_TEST(apply("capitalize", "éLAN") == "Élan");
  BOOST_TEST(apply("last_word", "one two three") == "three");
  BOOST_TEST(apply("last_word", "one\ntwo") == "one\ntwo");
  BOOST_TEST(apply("last_word", "one ") == "");
  BOOST_TEST(apply("but_last", "one two three") == "one two");
  BOOST_TEST(apply("but_last", "one") == "");
  BOOST_TEST(apply("wikitext", "2 @-@ 3") == "2-3");
  BOOST_TEST(apply("before '_'", "a_b_c") == "a");
  BOOST_TEST(apply("after '_'", "a_b_c") == "b_c");
  BOOST_TEST(apply("before_last ' '", "one two three") == "one two");
  BOOST_TEST(apply("after_last ' '", "one two three") == "three");
  BOOST_TEST(apply("replace 'aa' 'b'", "aaaaac") == "bbac");
  BOOST_TEST(apply("replace '|' ''", "a|b") == "ab");
  BOOST_TEST(apply("without_brackets", "a [x] b[[y]c [") == "a  bc [");
  BOOST_TEST(apply("without_brackets", "a [b\nc] [d\n[e\r]f") == "a [b\nc] [d\nf");  // of one line, as . is in Python
  BOOST_TEST(apply("after ': ' | strip|capitalize", "A:  b ") == "B");
  BOOST_TEST(apply("lower", "ÉlAN") == "élan");
  BOOST_TEST(apply("first_line", "one\r\ntwo") == "one");
  BOOST_TEST(apply("first_line", "one\rtwo") == "one\rtwo");
  BOOST_TEST(apply("first_line", "\none") == "");
  BOOST_TEST(apply("first_match '[0-9]+'", "a 12 b 34") == "12");
  BOOST_TEST(apply("last_match '[0-9]+'", "a 12 b 34") == "34");
  BOOST_TEST(apply("first_match 'is (yes|no)|(maybe)'|replace 'y' 'Y'", "it is yes") == "Yes");
  BOOST_TEST(apply("delete '[,|]'", "1,000|") == "1000");
}

// A generated text need not contain what a filter looks for.
BOOST_AUTO_TEST_CASE(what_is_not_found_is_no_answer) {
  BOOST_TEST(Filters("first_match '[0-9]+'|strip", "x").find("none").has_value() == false);
  BOOST_TEST(Filters("after '#'|strip", "x").find("none").has_value() == false);
  BOOST_TEST(Filters("strip|after '#'", "x").find(" # 3").value() == " 3");
  BOOST_TEST(Filters().find(" a").value() == " a");
  BRAID_CHECK_FAILS(apply("last_match 'b+'", "ac"), ErrorKind::input,
                    "bad line 3 in f.jsonl: expected a text with a match of 'b+', found 'ac'");
}

BOOST_AUTO_TEST_CASE(wrong_filters) {
  BRAID_CHECK_FAILS(Filters("stripp", "context in t.toml line 2"), ErrorKind::setting,
                    "bad text for context in t.toml line 2: expected one of the filters strip,",
                    "did you mean 'strip'?");
  BRAID_CHECK_FAILS(Filters("before", "x"), ErrorKind::setting, "expected 1 arguments of the filter before");
  BRAID_CHECK_FAILS(Filters("before ''", "x"), ErrorKind::setting, "not empty");
  BRAID_CHECK_FAILS(Filters("before _", "x"), ErrorKind::setting, "arguments of filters in single quotes, found '_'");
  BRAID_CHECK_FAILS(
      Filters("delete '('", "filter in t.toml line 2"), ErrorKind::setting,
      "bad text for delete of filter in t.toml line 2: expected a regular expression, found '(': ", "at byte 1");
  BRAID_CHECK_FAILS(Filters("strip|", "x"), ErrorKind::setting, "one of the filters");
  BRAID_CHECK_FAILS(apply("after '_'", "abc"), ErrorKind::input,
                    "bad line 3 in f.jsonl: expected a text with '_', found 'abc'");
}

BOOST_AUTO_TEST_SUITE_END()
