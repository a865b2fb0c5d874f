#include "braid/models/eval/answer.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/throws.h"

using namespace braid;
using namespace braid::models::eval;

BOOST_AUTO_TEST_SUITE(eval_answer)

namespace {
bool right(const AnswerRule& rule, const std::vector<std::string>& targets, const std::string& answer) {
  return RightAnswers(rule, targets, "x").matches(answer);
}
}  // namespace

BOOST_AUTO_TEST_CASE(equal_texts) {
  BOOST_TEST(right({}, {"a", "b"}, "b"));
  BOOST_TEST(!right({}, {"a", "b"}, "B"));
  BOOST_TEST(!right({}, {"a", "b"}, "b "));
  BOOST_TEST(right({.ignore_case = true}, {"\u00c9T"}, "\u00e9t"));
  BOOST_TEST(right({.ignore_punctuation = true}, {"a-b!"}, "ab"));
  BOOST_TEST(!right({.ignore_punctuation = true}, {"a"}, "\u00aba\u00bb"));  // of ASCII alone
  BOOST_TEST(right({.ignore_commas = true}, {"1,000,000"}, "1000000"));
  BOOST_TEST(!right({.ignore_commas = true}, {"a,b"}, "ab"));
  BOOST_TEST(!right({.ignore_commas = true}, {"1, 2"}, "1 2"));
}

BOOST_AUTO_TEST_CASE(parts_and_patterns) {
  const AnswerRule contains{.kind = MatchKind::contains, .ignore_case = true}, regex{.kind = MatchKind::regex};
  BOOST_TEST(right(contains, {"Paris"}, "it is paris, france"));
  BOOST_TEST(!right(contains, {"Paris"}, "it is rome"));
  BOOST_TEST(right(regex, {"^x", "[0-9]{2}"}, "a 12"));
  BOOST_TEST(!right(regex, {"^[0-9]{2}$"}, "a 12"));
  BOOST_TEST(right({.kind = MatchKind::regex, .ignore_case = true}, {"ab"}, "AB"));
  BRAID_CHECK_FAILS(right(regex, {"("}, ""), ErrorKind::input, "bad text for x: expected a regular expression");
}

BOOST_AUTO_TEST_SUITE_END()
