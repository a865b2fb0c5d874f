// Layer-wise decay of the learning rate: by block, and together with groups.
#include "apps/train/config/layer_decay.h"

#include <boost/test/unit_test.hpp>

using namespace braid;

BOOST_AUTO_TEST_SUITE(layer_decay)

using Names = std::vector<std::string>;
using Factors = std::vector<double>;

BOOST_AUTO_TEST_CASE(it_falls_from_the_last_block_to_the_input) {
  const Names names = {"embedding.weight",     "layers.0.attention.wo.weight",
                       "layers.0.norm.weight", "layers.1.norm.weight",
                       "norm.weight",          "layers_of_output.weight"};
  BOOST_TEST((apps::layer_factors(0.5, names) == Factors{0.125, 0.25, 0.25, 0.5, 1, 1}));
  // The first of two stacks is further from the output, and its norm belongs to its last block.
  const Names pair = {"table.weight", "encoder.layers.0.w", "encoder.norm.weight", "decoder.layers.0.w",
                      "decoder.norm.weight"};
  BOOST_TEST((apps::layer_factors(0.5, pair) == Factors{0.125, 0.25, 0.25, 0.5, 1}));
  BOOST_TEST((apps::layer_factors(0.5, {"w"}) == Factors{1}));
}

BOOST_AUTO_TEST_CASE(it_multiplies_the_rates_of_groups) {
  const Names names = {"embedding.weight", "layers.0.w", "layers.1.w", "norm.weight"};
  const std::vector<nn::ParameterGroup> given = {nn::parse_group("layers.0.* lr=10 weight_decay=0.5"),
                                                 nn::parse_group("norm.* frozen")};
  const auto groups = apps::with_layer_decay(given, 0.5, names);
  BOOST_TEST(nn::rule_of(groups, "embedding.weight").lr == 0.125);
  BOOST_TEST(nn::rule_of(groups, "layers.0.w").lr == 2.5);
  BOOST_TEST(*nn::rule_of(groups, "layers.0.w").weight_decay == 0.5);
  BOOST_TEST(nn::rule_of(groups, "layers.1.w").lr == 0.5);
  BOOST_TEST(nn::rule_of(groups, "norm.weight").frozen_until == nn::kNeverTrained);
  BOOST_TEST(apps::with_layer_decay(given, 1, names).size() == given.size());
}

BOOST_AUTO_TEST_SUITE_END()
