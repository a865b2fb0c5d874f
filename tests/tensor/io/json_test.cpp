#include "braid/tensor/io/json.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"
using namespace braid;

BOOST_AUTO_TEST_SUITE(io_json)

BOOST_AUTO_TEST_CASE(reads_a_file) {
  TempFolder folder;
  const auto j = io::read_json_file(folder.write("a.json", R"({"a": [1, 2.5, {"a": "ä"}], "b": null})"));
  BOOST_TEST(j["a"][0].get<int>() == 1);
  BOOST_TEST(j["a"][2]["a"].get<std::string>() == "ä");
  BRAID_CHECK_FAILS(io::read_json_file(folder / "a.json", 5), ErrorKind::input, "too large", "at most 5");
}

BOOST_AUTO_TEST_CASE(names_the_byte_of_a_mistake) {
  BRAID_CHECK_FAILS(io::parse_json(R"({"a": 1,, "b": 2})", "f.json", 8), ErrorKind::input, "f.json at byte 16");
  BRAID_CHECK_FAILS(io::parse_json("", "f.json"), ErrorKind::input, "f.json at byte 0");
  BRAID_CHECK_FAILS(io::parse_json("{} x", "f.json"), ErrorKind::input, "at byte 3");
  BRAID_CHECK_FAILS(io::parse_json("\"\xff\"", "f.json"), ErrorKind::input, "at byte 1", "UTF-8");
  BRAID_CHECK_FAILS(io::parse_json(std::string("{}\0{", 4), "f.json"), ErrorKind::input, "at byte 2", "a NUL byte");
}

// As the json module of Python reads them.
BOOST_AUTO_TEST_CASE(numbers_that_are_not_finite) {
  const auto j = io::parse_json(
      R"({"NaN": [NaN, -Infinity, "NaN", "\\", -1e999, 0.5], "x": {"b": Infinity, "c": 1e-999}})", "f.json");
  BOOST_TEST(std::isnan(j["NaN"][0].get<double>()));
  BOOST_TEST(j["NaN"][1].get<double>() == -HUGE_VAL);
  BOOST_TEST(j["NaN"][2].get<std::string>() == "NaN");
  BOOST_TEST(j["NaN"][4].get<double>() == -HUGE_VAL);
  BOOST_TEST(j["NaN"][5].get<double>() == 0.5);
  BOOST_TEST(j["x"]["b"].get<double>() == HUGE_VAL);
  BOOST_TEST(j["x"]["c"].get<double>() == 0.0);
  BOOST_TEST(io::parse_json(std::string(400, '9'), "f.json").get<double>() == HUGE_VAL);
  BOOST_TEST(io::parse_ordered_json(R"({"b": NaN, "a": 1})", "f.json").begin().key() == "b");
  for (const char* text : {"nan", "+Infinity", "--Infinity", "[NaN 1]", "{NaN: 1}", "NaNa", "1.e999", "01e999"})
    BRAID_CHECK_FAILS(io::parse_json(text, "f.json"), ErrorKind::input, "cannot read JSON in f.json");
}

BOOST_AUTO_TEST_CASE(ends_and_beginnings) {
  const std::string text = R"([{"a": "}\"]", "b": [1]}, 2] x)";
  BOOST_TEST(io::end_of_json(text, 0) == text.size() - 2);
  BOOST_TEST(text.substr(1, io::end_of_json(text, 1) - 1) == R"({"a": "}\"]", "b": [1]})");
  BOOST_TEST(io::end_of_json("{\"a\": \"", 0) == std::string::npos);
  BOOST_TEST(io::end_of_json("{[}", 0) == std::string::npos);
  for (size_t n = 0; n < text.size(); ++n) BOOST_TEST(io::begins_as_json(text.substr(0, n)), n);
  BOOST_TEST(!io::begins_as_json(text));
  BOOST_TEST(!io::begins_as_json("[Verse 1]"));
  BOOST_TEST(io::begins_as_json("[NaN, \"\xC3"));
}

BOOST_AUTO_TEST_CASE(caps_the_depth_and_rejects_a_name_given_twice) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
  };
  BOOST_TEST(io::parse_json(nested(io::max_json_depth), "f.json").is_array());
  BRAID_CHECK_FAILS(io::parse_json(nested(io::max_json_depth + 1), "f.json"), ErrorKind::input, "nested too deeply");
  BRAID_CHECK_FAILS(io::parse_json(std::string(10'000'000, '['), "f.json"), ErrorKind::input, "at most 64 levels");
  BRAID_CHECK_FAILS(io::parse_json(R"({"x": {"a": 1, "b": {"a": 2}, "a": 3}})", "f.json"), ErrorKind::input,
                    "\"a\" twice");
}

BOOST_AUTO_TEST_CASE(caps_the_steps_for_objects_in_one_list_and_names_in_one_object) {
  std::string objects = "{}", names = "\"x\": 0";
  for (int i = 1; i < 100; ++i) objects += ",{}", names += str(",\"x", i, "\": 0");
  objects = "[" + objects + "]", names = "{" + names + "}";
  // Behind each of 100 objects those so far, before each of 100 names those so far and their values.
  BOOST_TEST(io::parse_ordered_json(objects, "f.json", 5050).size() == 100U);
  BOOST_TEST(io::parse_ordered_json(names, "f.json", 9900).size() == 100U);
  BRAID_CHECK_FAILS(io::parse_ordered_json(objects, "f.json", 5049), ErrorKind::input, "too many objects or names");
  BRAID_CHECK_FAILS(io::parse_ordered_json(names, "f.json", 9899), ErrorKind::input, "too many objects or names");
}

BOOST_AUTO_TEST_SUITE_END()
