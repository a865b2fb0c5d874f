#include "apps/cli/prompt.h"

#include <boost/test/unit_test.hpp>

#include "tests/apps/support.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::apps;

BOOST_AUTO_TEST_SUITE(prompt)

BOOST_AUTO_TEST_CASE(escapes) {
  BOOST_TEST(unescape("a\\n\\tb\\\\n\\x41\\\"\\'") == "a\n\tb\\nA\"'");
  BOOST_TEST((unescape("\\0\\xfF") == std::string("\0\xff", 2)));
  BOOST_TEST(unescape("") == "");
  for (const char* bad : {"\\q", "end\\", "\\x4", "\\xzz"})
    BRAID_CHECK_FAILS(unescape(bad), ErrorKind::setting, "unknown escape");
}

BOOST_AUTO_TEST_CASE(templates) {
  BOOST_TEST(PromptTemplate()("hi {prompt}") == "hi {prompt}");
  BOOST_TEST(PromptTemplate("Q: {prompt}\nA:")("why {prompt}?") == "Q: why {prompt}?\nA:");
  BOOST_TEST(PromptTemplate("{prompt}{prompt}")("a") == "aa");
  const test::Scratch scratch;
  const std::string file = (scratch / "chat").string();
  test::write(file, "<{prompt}>\n\n");
  BOOST_TEST(PromptTemplate(file)("x") == "<x>\n");
  test::write(file, "no place");
  BRAID_CHECK_FAILS(PromptTemplate{file}, ErrorKind::setting, "found none in " + file);
  BRAID_CHECK_FAILS(PromptTemplate{"Hello"}, ErrorKind::setting, "found 'Hello'");
}

BOOST_AUTO_TEST_SUITE_END()
