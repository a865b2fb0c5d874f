#include "braid/nn/name_pattern.h"

#include <boost/test/unit_test.hpp>

#include "tests/support/throws.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(name_pattern)

BOOST_AUTO_TEST_CASE(a_pattern_covers_the_complete_name) {
  BOOST_TEST(nn::matches("a.b", "a.b"));
  BOOST_TEST(!nn::matches("a.b", "a.bc"));
  BOOST_TEST(nn::matches("*", ""));
  BOOST_TEST(nn::matches("layers.*.wo.weight", "layers.10.attention.wo.weight"));
  BOOST_TEST(nn::matches("*.dyn_w_proj.*", "layers.0.attention.dyn_w_proj.dw1"));
  BOOST_TEST(!nn::matches("*.dyn_w_proj", "layers.0.attention.dyn_w_proj.dw1"));
  BOOST_TEST(nn::matches("layers.?.w", "layers.3.w"));
  BOOST_TEST(!nn::matches("layers.?.w", "layers.13.w"));
  BOOST_TEST(nn::matches("*ab*ab", "abaabab"));  // a star gives back what it covered too eagerly
  BOOST_TEST(!nn::matches("*a?b", "ab"));
  BOOST_TEST(!nn::matches("", "a"));
}

BOOST_AUTO_TEST_CASE(a_pattern_without_a_match_names_the_nearest) {
  const std::vector<std::string> names = {"tok_embeddings.weight", "layers.0.attention.wqkv.weight",
                                          "layers.1.attention.wqkv.weight", "layers.0.attention.dyn_w_proj.dw1"};
  nn::check_pattern("x", "*.dw1", names);
  BRAID_CHECK_FAILS(
      nn::check_pattern("optimizer.groups", "*.dyn_w_pro.*", names), ErrorKind::setting,
      "optimizer.groups: no name matches '*.dyn_w_pro.*'; the nearest are layers.*.attention.dyn_w_proj.");
  BRAID_CHECK_FAILS(nn::check_pattern("optimizer.groups", "*.wqvk.weight", names), ErrorKind::setting,
                    "nearest are layers.*.attention.wqkv.weight, ");
}

BOOST_AUTO_TEST_SUITE_END()
