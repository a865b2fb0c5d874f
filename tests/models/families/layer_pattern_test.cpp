#include "braid/models/families/layer_pattern.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;
using models::layers_of;

BOOST_AUTO_TEST_SUITE(layer_pattern)

namespace {
std::string marks(const std::string& pattern, const std::vector<int64_t>& windows = {8, 0, 8, 0, 0}) {
  BOOST_TEST(models::allows(models::layer_pattern_rule(), models::Value(pattern)));
  std::string text;
  for (const bool on : layers_of("some_layers", pattern, windows)) text += on ? 'x' : '.';
  return text;
}
}  // namespace

BOOST_AUTO_TEST_CASE(a_pattern_names_layers) {
  BOOST_TEST(marks("all") == "xxxxx");
  BOOST_TEST(marks("even") == "x.x.x");
  BOOST_TEST(marks("odd") == ".x.x.");
  BOOST_TEST(marks("local") == "x.x..");
  BOOST_TEST(marks("global") == ".x.xx");
  BOOST_TEST(marks("first:2") == "xx...");
  BOOST_TEST(marks("last:1") == "....x");
  BOOST_TEST(marks("last:5") == "xxxxx");
  BOOST_TEST(marks("1,3") == ".x.x.");
  BOOST_TEST(marks("0") == "x....");
}

BOOST_AUTO_TEST_CASE(a_pattern_beyond_the_layers_is_an_error) {
  for (const char* pattern : {"first:6", "last:6", "1,5", "5"})
    BOOST_TEST(throws_with(
        [&] {
          layers_of("some_layers", pattern, {0, 0, 0, 0, 0});
        },
        str("bad some_layers: expected layers of the model's 5, found ", pattern)));
}

BOOST_AUTO_TEST_CASE(anything_else_is_not_allowed) {
  for (const char* text :
       {"", "none", "last", "last:", "last:0", "last:-1", "last:x", "1,1", "3,1", "-1", "1,", "1.5", "99999"})
    BOOST_TEST(!models::allows(models::layer_pattern_rule(), models::Value(std::string(text))), text);
}

BOOST_AUTO_TEST_SUITE_END()
