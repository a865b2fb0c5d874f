#include "tensor/text.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

using namespace braid;

BOOST_AUTO_TEST_SUITE(text)

BOOST_AUTO_TEST_CASE(shortest_numbers_read_back) {
  for (double value : {0.1, 1e-8, 3.0, 5e5, 1.0 / 3, 1e300, -0.25}) BOOST_TEST(*parse_float(shortest(value)) == value);
  BOOST_TEST(shortest(0.1) == "0.1");
  BOOST_TEST(shortest(std::numeric_limits<double>::infinity()) == "inf");
}

BOOST_AUTO_TEST_CASE(numbers_are_whole_texts) {
  BOOST_TEST(*parse_int("-12") == -12);
  BOOST_TEST(*parse_int("+7") == 7);
  for (const char* bad : {"", "1 ", "1.5", "x", "9223372036854775808", "0x10"}) BOOST_TEST(!parse_int(bad));
  for (const char* bad : {"", "1e", "1,5", "1e999"}) BOOST_TEST(!parse_float(bad));
}

BOOST_AUTO_TEST_CASE(distance_counts_single_edits) {
  BOOST_TEST(edit_distance("head", "head") == 0);
  BOOST_TEST(edit_distance("n_heads", "n_head") == 1);
  BOOST_TEST(edit_distance("n_haed", "n_head") == 1);
  BOOST_TEST(edit_distance("", "abc") == 3);
}

BOOST_AUTO_TEST_CASE(nearest_name_only_when_near) {
  const std::vector<std::string> names = {"dim", "n_layer", "n_head", "profile.gelu"};
  BOOST_TEST(nearest("n_heads", names) == "n_head");
  BOOST_TEST(nearest("gelu", names) == "profile.gelu");
  BOOST_TEST(nearest("temperature", names) == "");
  BOOST_TEST(nearest("", names) == "");
  BOOST_TEST(did_you_mean("n_layers", names) == "; did you mean 'n_layer'?");
  BOOST_TEST(did_you_mean("temperature", names) == "");
}

BOOST_AUTO_TEST_CASE(lists_and_blanks) {
  BOOST_TEST(join({"a", "b"}, ", ") == "a, b");
  BOOST_TEST(join({}, ", ") == "");
  BOOST_TEST(split("a,,b", ',') == (std::vector<std::string>{"a", "", "b"}), boost::test_tools::per_element());
  BOOST_TEST(trim(" \t a b\n") == "a b");
  BOOST_TEST(trim("  ").empty());
}

BOOST_AUTO_TEST_CASE(previews_are_safe_to_print) {
  BOOST_TEST(preview("a\nb\x1b[0m") == "a?b?[0m");
  BOOST_TEST(preview("abcdef", 3) == "abc...");
  BOOST_TEST(preview("a\xc3\xa9", 2) == "a...");  // does not cut a character in two
  BOOST_TEST(preview("\xff") == "?");
  BOOST_TEST(valid_utf8("caf\xc3\xa9"));
  BOOST_TEST(!valid_utf8("\xc0\x80"));
}

BOOST_AUTO_TEST_SUITE_END()
