// The grammar of JSON reads what nlohmann::json reads, within its bounds on white space and numbers.
#include <boost/test/unit_test.hpp>
#include <regex>

#include "braid/tensor/error.h"
#include "tests/models/inference/constraint/constrained_texts.h"

using namespace braid;
using namespace braid::test;
using nlohmann::json;

BOOST_AUTO_TEST_SUITE(json_grammar)

namespace {

std::string json_space(std::mt19937_64& random) {
  switch (random() % 8) {
    case 0:
      return " ";
    case 1:
      return "\n" + std::string(random() % 33, random() % 2 ? ' ' : '\t');
    default:
      return "";
  }
}

std::string json_text_string(std::mt19937_64& random) {
  const char* parts[] = {
      "a",    "Z",   " ",   "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF",
      "\x7F", "\\n", "\\/", "\\\"",     "\\u00e9",      "\\uD83D\\uDE00",   "\\ud7FF",      "\\uE000",
      "{",    "]",   ","};
  std::string text = "\"";
  for (size_t n = random() % 6; n > 0; --n) text += parts[random() % std::size(parts)];
  return text + "\"";
}

std::string json_text(std::mt19937_64& random, int depth) {
  const char* scalars[] = {
      "true", "false", "null", "0", "-0", "12", "-7.25", "1e5", "3E-07", "10.0e+1", "12345678901234567890"};
  const size_t kind = random() % (depth > 0 ? 4 : 2);
  if (kind == 0) return scalars[random() % std::size(scalars)];
  if (kind == 1) return json_text_string(random);
  std::string text = kind == 2 ? "{" : "[";
  text += json_space(random);
  for (size_t n = random() % 4, i = 0; i < n; ++i) {
    if (i > 0) text += "," + json_space(random);
    if (kind == 2) text += json_text_string(random) + json_space(random) + ":" + json_space(random);
    text += json_text(random, depth - 1) + json_space(random);
  }
  return text + (kind == 2 ? "}" : "]");
}

// Without the contents of strings.
std::string outside_strings(const std::string& text) {
  std::string rest;
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (inside && text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      inside = !inside, rest += '"';
    else if (!inside)
      rest += text[i];
  }
  return rest;
}

// The bounds that JSON has not: white space, digits. None behind the value.
bool within_bounds(const std::string& text) {
  static const std::regex space("( |\n[ \t]{0,32})?"), runs("[ \t\r\n]+"), numbers("[-+.0-9eE]+"),
      number("-?[0-9]{1,20}(\\.[0-9]{1,20})?([eE][-+]?[0-9]{1,2})?");
  const std::string rest = outside_strings(text);
  if (!text.empty() && std::string_view(" \t\r\n").find(text.back()) != std::string_view::npos) return false;
  const auto all = [&](const std::regex& find, const std::regex& match) {
    for (auto i = std::sregex_iterator(rest.begin(), rest.end(), find); i != std::sregex_iterator(); ++i)
      if (!std::regex_match(i->str(), match) && i->str().find_first_of("0123456789 \t\r\n") != std::string::npos)
        return false;
    return true;
  };
  return all(runs, space) && all(numbers, number);
}

std::shared_ptr<const models::Grammar> any_json() { return shared(models::json_schema_grammar("{}")); }

}  // namespace

BOOST_AUTO_TEST_CASE(reads_what_another_parser_reads) {
  const auto grammar = any_json();
  std::mt19937_64 random(7);
  int accepted = 0, rejected = 0;
  for (int i = 0; i < 6000; ++i) {
    std::string text = json_text(random, 3);
    BOOST_TEST_REQUIRE(json::accept(text));
    BOOST_TEST(reads(grammar, text), text);
    const std::string bytes =
        "{}[]\":,\\u0123456789eE+-. \n\t\r\x01\x1F\x7F\x80\xBF\xC0\xC3\xED\xA0\xF4\x90\xFFtrufalsn/dD89aAbB";
    for (int k = 0; k < 4; ++k) {  // one byte more, less or another
      std::string changed = text;
      for (size_t edits = 1 + random() % 2; edits > 0 && !changed.empty(); --edits) {
        const size_t at = random() % changed.size();
        const char byte = bytes[random() % bytes.size()];
        if (random() % 3 == 0)
          changed.erase(at, 1);
        else if (random() % 2)
          changed.insert(at, 1, byte);
        else
          changed[at] = byte;
      }
      if (changed.starts_with("\xEF\xBB\xBF")) continue;  // a byte order mark, which that parser skips
      const bool expected = json::accept(changed) && within_bounds(changed);
      ++(expected ? accepted : rejected);
      BOOST_TEST(reads(grammar, changed) == expected, changed << " should be " << expected);
    }
  }
  BOOST_TEST(accepted > 2000);
  BOOST_TEST(rejected > 5000);
}

BOOST_AUTO_TEST_CASE(bounds_white_space_and_numbers) {
  const auto grammar = any_json();
  for (const char* text : {" {}", "\n{}", "\n  \t{\n}", "[1,\n    2]", "[ 1 , 2 ]"})
    BOOST_TEST(reads(grammar, text), text);
  BOOST_TEST(reads(grammar, "[\n" + std::string(32, ' ') + "1]"));
  BOOST_TEST(!reads(grammar, "[\n" + std::string(33, ' ') + "1]"));
  for (const char* text : {"  {}", "\n\n{}", "{} ", "{}\n", "[1,  2]", "[\t1]", "[\r\n1]"})
    BOOST_TEST(!reads(grammar, text), text);
  const std::string twenty(20, '9');
  for (const std::string& text : {twenty, "-" + twenty + "." + twenty + "e-99"}) BOOST_TEST(reads(grammar, text), text);
  for (const std::string& text :
       {twenty + "9", "0." + twenty + "9", std::string("1e999"), std::string("01"), std::string("1.")})
    BOOST_TEST(!reads(grammar, text), text);
}

BOOST_AUTO_TEST_CASE(an_object_is_no_other_value) {
  const auto grammar = shared(models::json_object_grammar());
  for (const char* text : {"{}", " {\"a\": [1, {\"b\": null}]}"}) BOOST_TEST(reads(grammar, text), text);
  for (const char* text : {"[]", "1", "\"{}\"", "{}{}", ""}) BOOST_TEST(!reads(grammar, text), text);
}

BOOST_AUTO_TEST_CASE(grammars_that_never_read_are_errors) {
  models::GrammarWriter writer;
  const auto grow = [&] {
    for (size_t i = 0; i <= models::Grammar::max_instructions; ++i) writer.text("a");
  };
  BOOST_CHECK_EXCEPTION(grow(), Error, [](const Error& e) {
    return std::string(e.what()) ==
           "the schema is too large: at most 200000 steps of its automaton; shorten names and lists of values";
  });
  models::GrammarWriter repeated;
  uint32_t self = 0;
  const auto body = [&] { repeated.repeat(self, 0, 2), repeated.text("a"); };
  repeated.rule(
      body, [&](uint32_t begun) { self = begun; }, "#/items");
  repeated.add(models::Grammar::Op::accept);
  BOOST_CHECK_EXCEPTION(repeated.finish(), Error, [](const Error& e) {
    return std::string(e.what()) == "'#/items' refers to itself without another value around it";
  });
}

BOOST_AUTO_TEST_SUITE_END()
