#include "braid/models/eval/pattern.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/throws.h"

using namespace braid;
using namespace braid::models::eval;

BOOST_AUTO_TEST_SUITE(eval_pattern)

namespace {
std::string found(const std::string& pattern, const std::string& text, bool last = false) {
  return Pattern(pattern, "x").find(text, last).value_or("nothing");
}
}  // namespace

// By Python's re.findall().
BOOST_AUTO_TEST_CASE(matches_and_groups) {
  BOOST_TEST(found("b+", "abbab") == "bb");
  BOOST_TEST(found("b+", "abbab", true) == "b");
  BOOST_TEST(found("c", "ab") == "nothing");
  BOOST_TEST(found("#### (-?[0-9.,]+)", "x #### 1,2. y") == "1,2.");
  BOOST_TEST(found("(-?[$0-9.,]{2,})|(-?[0-9]+)", "costs 3 or $12", true) == "$12");
  BOOST_TEST(found("(-?[$0-9.,]{2,})|(-?[0-9]+)", "costs $12 or 3", true) == "3");
  BOOST_TEST(found("a(x*)b", "ab") == "");
  BOOST_TEST(found("^b", "a\nb") == "nothing");
  BOOST_TEST(found("(?m)^b", "a\nb") == "b");
  BOOST_TEST(found("\\w+", "\u00e9t\u00e9 x") == "\u00e9t\u00e9");
  BOOST_TEST(found("x*", "\u00e9x", true) == "");  // at the end
  BOOST_TEST(Pattern("x*", "x").find("\u00e9", false).value() == "");
  BOOST_TEST(Pattern("ABC", "x", true).find("xabc", false).value() == "abc");
  BOOST_TEST(!Pattern());
}

BOOST_AUTO_TEST_CASE(without_matches) {
  BOOST_TEST(Pattern("[,$]", "x").without_matches("$1,000") == "1000");
  BOOST_TEST(Pattern("\\.$", "x").without_matches("1.5.") == "1.5");
  BOOST_TEST(Pattern("x*", "x").without_matches("a\u00e9xb") == "a\u00e9b");
}

BOOST_AUTO_TEST_CASE(bad_patterns) {
  BRAID_CHECK_FAILS(Pattern("a(", "filter in t.toml line 3"), ErrorKind::setting,
                    "bad text for filter in t.toml line 3: expected a regular expression, found 'a(': ", "at byte 2");
  BRAID_CHECK_FAILS(Pattern("[", "f", false, ErrorKind::input), ErrorKind::input, "bad text for f");
  BRAID_CHECK_FAILS(Pattern("(a+)+$", "f").find(std::string(60, 'a') + "b", false), ErrorKind::input,
                    "write a pattern that backtracks less");
}

BOOST_AUTO_TEST_SUITE_END()
