#include "braid/tensor/base/strings.h"

#include <boost/test/unit_test.hpp>
#include <limits>

using namespace braid::detail;

BOOST_AUTO_TEST_SUITE(text)

BOOST_AUTO_TEST_CASE(numbers_survive_the_round_trip) {
  for (double value : {0.1, 1.0 / 3, 1e-300, 5e-324, 1.7976931348623157e308, -2.5, 0.0, 123456789.123456789})
    BOOST_TEST(parse_float(shortest(value)).value() == value);
  BOOST_TEST(shortest(0.1) == "0.1");
  BOOST_TEST(shortest(3) == "3");
  BOOST_TEST(decimal(1e6) == "1000000");
  BOOST_TEST(decimal(0.5) == "0.5");
  BOOST_TEST(hex(255, 4) == "00ff");
  BOOST_TEST(hex(UINT64_MAX, 1) == "ffffffffffffffff");
  BOOST_TEST(mebibytes((1 << 20) + 1) == "2 MiB");
}

BOOST_AUTO_TEST_CASE(only_whole_texts_are_numbers) {
  BOOST_TEST(parse_int("42").value() == 42);
  BOOST_TEST(parse_int("+42").value() == 42);
  BOOST_TEST(parse_int("-9223372036854775808").value() == std::numeric_limits<int64_t>::min());
  for (const char* bad : {"", "x", "4 ", " 4", "4x", "4.0", "0x10", "9223372036854775808", "+"})
    BOOST_TEST(!parse_int(bad).has_value(), bad);
  for (const char* bad : {"", "x", "1.0x", " 1", "1e999", "--1"}) BOOST_TEST(!parse_float(bad).has_value(), bad);
}

BOOST_AUTO_TEST_CASE(edit_distance_counts_swaps_once) {
  BOOST_TEST(edit_distance("", "abc") == 3);
  BOOST_TEST(edit_distance("steps", "steps") == 0);
  BOOST_TEST(edit_distance("setps", "steps") == 1);
  BOOST_TEST(edit_distance("kitten", "sitting") == 3);
}

BOOST_AUTO_TEST_CASE(nearest_name) {
  const std::vector<std::string> names = {"train.steps", "optimizer.lr", "train.batch_size"};
  BOOST_TEST(nearest("train.step", names) == "train.steps");
  BOOST_TEST(nearest("lr", names) == "optimizer.lr");
  BOOST_TEST(nearest("train.bacth_size", names) == "train.batch_size");
  BOOST_TEST(nearest("zebra", names) == "");
  BOOST_TEST(nearest(std::string(100000, 'x'), names) == "");
  BOOST_TEST(did_you_mean("train.step", names) == "; did you mean 'train.steps'?");
  BOOST_TEST(did_you_mean("zebra", names) == "");
  // The right word in the wrong section.
  BOOST_TEST(nearest("train.lr", names) == "optimizer.lr");
  BOOST_TEST(nearest("optimizer.bacth_size", names) == "train.batch_size");
  BOOST_TEST(nearest("zebra.crossing", names) == "");
  BOOST_TEST(did_you_mean("train.interval", {"log.level", "eval.interval", "log.interval", "log.interval"}) ==
             "; did you mean 'eval.interval' or 'log.interval'?");
}

BOOST_AUTO_TEST_CASE(previews_are_harmless) {
  BOOST_TEST(preview("short") == "short");
  BOOST_TEST(preview("line\nbreak\x1b[31m") == "line?break?[31m");
  BOOST_TEST(preview("abcdef", 3) == "abc...");
  BOOST_TEST(preview("ab\xE2\x82\xAC", 3) == "ab...");  // a character is not cut in two
  BOOST_TEST(preview("\xFF\xFE") == "??");
}

BOOST_AUTO_TEST_CASE(splitting) {
  BOOST_TEST(split("a,,b", ',').size() == 3u);
  BOOST_TEST(split("", ',').size() == 1u);
  BOOST_TEST(trim(" \ta b\r\n") == "a b");
  BOOST_TEST(trim("  ") == "");
  BOOST_TEST(join({"a", "b"}, ", ") == "a, b");
}

BOOST_AUTO_TEST_SUITE_END()
