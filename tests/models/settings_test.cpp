#include "braid/models/settings.h"

#include <boost/test/unit_test.hpp>

using namespace braid::models;

BOOST_AUTO_TEST_SUITE(settings)

namespace {

enum class Color : uint8_t { red, green };

// The value as text, "-" where the text is of another type or not allowed.
std::string read(const ValueRule& rule, const std::string& text) {
  const std::optional<Value> value = parse_value(rule, text);
  return value && allows(rule, *value) ? value_text(*value) : "-";
}

}  // namespace

BOOST_AUTO_TEST_CASE(ranges) {
  const ValueRule open = {.type = ValueType::number, .min = 0, .max = 1, .min_open = true};
  BOOST_TEST(expectation(open) == "a number above 0 and at most 1");
  BOOST_TEST(expectation(from_below(0, 1)) == "a number from 0 to below 1");
  BOOST_TEST(expectation(above(2)) == "a number above 2");
  BOOST_TEST(expectation({.type = ValueType::integer, .max = 1e6}) == "an integer of at most 1000000");
  BOOST_TEST(read(open, "0") == "-");
  BOOST_TEST(read(open, " 1 ") == "1");
  BOOST_TEST(read(from_below(0, 1), "1") == "-");
  for (const char* text : {"nan", "inf", "-inf", "", "1x"}) BOOST_TEST(read(at_least(0), text) == "-", text);
  BOOST_TEST(read({.type = ValueType::integer}, "1.0") == "-");
  const ValueRule exact = {.type = ValueType::integer, .max = 0x1p53};  // 2^53 + 1 would be 2^53 as a double
  BOOST_TEST(read(exact, "9007199254740992") == "9007199254740992");
  BOOST_TEST(read(exact, "9007199254740993") == "-");
}

BOOST_AUTO_TEST_CASE(null_and_lists) {
  const ValueRule windows = {.type = ValueType::integers, .min = 1, .nullable = true};
  BOOST_TEST(expectation(windows) == "a list of items, each null or an integer of at least 1");
  BOOST_TEST(read(windows, "[8, null, none]") == "8,null,null");
  for (const char* text : {"8,0", "8,-9223372036854775808", "x"}) BOOST_TEST(read(windows, text) == "-", text);
  BOOST_TEST(!list_value({Value(kNullItem)}).has_value());
  BOOST_TEST(read(windows, "") == "");
  BOOST_TEST(!allows(windows, Value()));
  BOOST_TEST(read({.type = ValueType::integers}, "8,null") == "-");
  BOOST_TEST(read({.type = ValueType::integer, .nullable = true}, "none") == "null");
  const ValueRule names = {.type = ValueType::strings, .choices = {"a", "b"}};
  BOOST_TEST(read(names, "[\"b\", 'a']") == "b,a");
  BOOST_TEST(read(names, "a,a") == "-");
  BOOST_TEST(!list_value({Value(int64_t{1}), Value("a")}).has_value());
}

BOOST_AUTO_TEST_CASE(texts_are_inferred) {
  BOOST_TEST((infer_value(" true") == Value(true)));
  BOOST_TEST((infer_value("12") == Value(int64_t{12})));
  BOOST_TEST((infer_value("1e-3") == Value(1e-3)));
  BOOST_TEST((infer_value("\"12\"") == Value("12")));
  BOOST_TEST((infer_value("[1, 2]") == Value(std::vector<int64_t>{1, 2})));
  BOOST_TEST((infer_value("[1, null]") == Value(std::vector<std::string>{"1", "null"})));
  BOOST_TEST((infer_value("['1']") == Value(std::vector<std::string>{"1"})));
}

BOOST_AUTO_TEST_CASE(settings_write_their_variables) {
  double rate = 1;
  int64_t window = 0;
  bool plus_one = false;
  Color color = Color::red;
  const std::vector<Setting> table = {{"rate", &rate, "", above(0)},
                                      {"window", &window, "", between(1, 9), 0},
                                      {"keys", &plus_one, "", one_of({"W", "W+1"})},
                                      {"color", &color, "", one_of({"red", "green"})}};
  BOOST_TEST(find_setting(table, "widow") == nullptr);
  const auto set = [&](const char* name, Value value) { return assign(*find_setting(table, name), std::move(value)); };
  BOOST_TEST((set("rate", int64_t{3}) && rate == 3));
  BOOST_TEST(!set("rate", 0.0));
  BOOST_TEST(!set("rate", int64_t{1} << 53 | 1));  // no double has this value
  BOOST_TEST(rate == 3);
  BOOST_TEST(value_text(find_setting(table, "window")->get()) == "null");
  BOOST_TEST((!set("window", int64_t{0}) && set("window", int64_t{9}) && window == 9));
  BOOST_TEST((set("window", Value()) && window == 0));
  BOOST_TEST((set("keys", "W+1") && plus_one && !set("keys", true)));
  BOOST_TEST((set("color", "green") && color == Color::green && !set("color", "gren")));
  BOOST_TEST(bad_value("color", table[3].rule, "'gren'", "gren") ==
             "bad value for color: expected one of red, green, found 'gren'; did you mean 'green'?");
}

BOOST_AUTO_TEST_SUITE_END()
