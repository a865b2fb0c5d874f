#include "braid/models/eval/format_string.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/throws.h"

using namespace braid;
using namespace braid::models::eval;

BOOST_AUTO_TEST_SUITE(eval_format_string)

using nlohmann::json;

namespace {
const Location kLocation{"f.jsonl", 3};
const json kObject = json::parse(
    R"({"q": "Why?", "n": 7, "inner": {"list": ["a", "b"]}, "yes": true, "none": null, "t": "a|b}c", "q.x": 1})");
std::string expand(const std::string& format) { return FormatString(format, "x").text(kObject, kLocation); }
}  // namespace

BOOST_AUTO_TEST_CASE(fields_and_texts) {
  BOOST_TEST(expand("Q: {q}\n{n}!") == "Q: Why?\n7!");
  BOOST_TEST(expand("{inner.list.1}{ q }") == "bWhy?");
  BOOST_TEST(expand("{{{n}}}") == "{7}");
  BOOST_TEST(expand("") == "");
  BOOST_TEST(expand("{t|before '|'}{t|after '}'|strip}") == "ac");
}

BOOST_AUTO_TEST_CASE(a_bare_field_is_its_value) {
  BOOST_TEST((FormatString("{inner.list}", "x").value(kObject, kLocation) == json({"a", "b"})));
  BOOST_TEST((FormatString("{yes}", "x").value(kObject, kLocation) == json(true)));
  BOOST_TEST((FormatString("{n} ", "x").value(kObject, kLocation) == json("7 ")));
}

BOOST_AUTO_TEST_CASE(wrong_fields) {
  const char* line = "bad line 3 in f.jsonl: expected ";
  BRAID_CHECK_FAILS(expand("{inner.lst}"), ErrorKind::input, line, "the field 'inner.lst', found the fields list",
                    "did you mean 'list'?");
  BRAID_CHECK_FAILS(expand("{inner.list.2}"), ErrorKind::input, "the field 'inner.list.2', found a list");
  BRAID_CHECK_FAILS(expand("{n.x}"), ErrorKind::input, "the field 'n.x', found a number");
  BRAID_CHECK_FAILS(expand("{none}"), ErrorKind::input, "a string or a number in the field 'none', found null");
  BRAID_CHECK_FAILS(expand("{inner}"), ErrorKind::input, "found an object");
  BRAID_CHECK_FAILS(expand("{yes}"), ErrorKind::input, "found true or false");
}

BOOST_AUTO_TEST_CASE(wrong_formats) {
  BRAID_CHECK_FAILS(expand("a {q"), ErrorKind::setting, "bad text for x: expected a } behind every {, found '{q'");
  BRAID_CHECK_FAILS(expand("a } b"), ErrorKind::setting, "a { before every }");
  BRAID_CHECK_FAILS(expand("{}"), ErrorKind::setting, "the name of a field in {}, found '{}'");
  BRAID_CHECK_FAILS(expand("{a..b}"), ErrorKind::setting, "the name of a field");
  BRAID_CHECK_FAILS(expand("{a|b}"), ErrorKind::setting, "one of the filters");
}

BOOST_AUTO_TEST_SUITE_END()
