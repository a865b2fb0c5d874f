// DCMHA in chosen blocks: the others are those of ViT; derivative, folders, settings, FLOPs.
#include <boost/test/unit_test.hpp>
#include <map>

#include "braid/models/cost/trace.h"
#include "braid/models/families/vit/family.h"
#include "braid/models/registry.h"
#include "tests/models/families/vit/support.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(vit_compose_layers)

using models::Vit, models::VitConfig;

namespace {

VitConfig second_block() {
  VitConfig c = small_vit();
  c.compose_layers = "1";
  return c;
}

}  // namespace

// It is DCMHA everywhere with the terms of the first block zero.
BOOST_AUTO_TEST_CASE(other_blocks_have_plain_attention) {
  const Vit all = random_vit(small_vit()), chosen = random_vit(second_block());
  std::map<std::string, Tensor> weights;
  for (const nn::NamedTensor& p : nn::parameters(all)) {
    weights[p.name] = p.value.detach();
    const bool term =
        p.name.ends_with("dyn_w_proj.qkw") || p.name.ends_with("dyn_w_proj.dd") || p.name.ends_with("_proj.w");
    if (p.name.starts_with("layers.0.") && term) weights[p.name].fill(0);
  }
  for (const nn::NamedTensor& p : nn::parameters(chosen)) {
    BOOST_TEST_REQUIRE(weights.contains(p.name), p.name);
    p.value.detach().copy_(weights.at(p.name));
    weights.erase(p.name);
  }
  BOOST_TEST(!weights.empty());
  for (const auto& [name, value] : weights) BOOST_TEST(name.starts_with("layers.0.attention."), name);
  NoGrad off;
  const Tensor pixels = vit_batch(small_vit(), 3).at("pixel_values");
  BOOST_TEST(is_close(chosen.logits(pixels), all.logits(pixels), 1e-13));
  BOOST_TEST(!is_close(chosen.logits(pixels), random_vit(small_vit()).logits(pixels), 1e-3));
}

BOOST_AUTO_TEST_CASE(derivative_of_the_model) {
  const GradcheckResult result = gradcheck_vit(second_block());
  BOOST_TEST(result.error < 1e-7, result.where);
}

BOOST_AUTO_TEST_CASE(folders) {
  for (const char* layers : {"1", "last:1", "0,1"}) {
    VitConfig c = small_vit();
    c.compose_layers = layers;
    check_vit_folder(c);
  }
}

// Lists are arrays, one layer is a number, as in folders that were written before there were other patterns.
BOOST_AUTO_TEST_CASE(a_list_is_an_array_in_a_folder) {
  for (const auto& [pattern, text] :
       {std::pair{"1", ": 1"}, {"0,1", ": [\n    0,\n    1\n  ]"}, {"even", ": \"even\""}}) {
    VitConfig c = small_vit();
    c.compose_layers = pattern;
    const std::string json = models::write_vit_config(c);
    BOOST_TEST(json.find("\"compose_layers\"" + std::string(text)) != std::string::npos, json);
    BOOST_TEST(models::read_vit_config(json, "config.json").compose_layers == pattern);
  }
  std::string json = models::write_vit_config(second_block());
  for (const auto& [value, read] : {std::pair{"[]", "all"}, {"[0, 1]", "0,1"}, {"null", "all"}}) {
    std::string other = json;
    other.replace(other.find("\"compose_layers\": 1"), 19, std::string("\"compose_layers\": ") + value);
    BOOST_TEST(models::read_vit_config(other, "config.json").compose_layers == read);
  }
  json.replace(json.find("\"compose_layers\": 1"), 19, "\"compose_layers\": 1.5");
  BOOST_TEST(throws_with([&] { models::read_vit_config(json, "config.json"); }, "bad value for compose_layers"));
}

BOOST_AUTO_TEST_CASE(settings_are_checked) {
  for (const char* bad : {"6", "last:7"})
    BOOST_TEST(throws_with(
        [&] {
          models::configure_model("dc-vit-28", {{"compose_layers", bad}});
        },
        "bad compose_layers: expected layers of the model's 6"));
  for (const char* bad : {"2,1", "1,1"})
    BOOST_TEST(throws_with(
        [&] {
          models::configure_model("dc-vit-28", {{"compose_layers", bad}});
        },
        "ascending numbers from 0"));
  BOOST_TEST(throws_with([] { models::configure_model("dc-vit-28", {{"compose_layers", "-1"}}); }, "compose_layers"));
}

BOOST_AUTO_TEST_CASE(flops) {
  VitConfig c = small_vit();
  const auto flops_of = [](const VitConfig& config) {
    return models::forward_flops(models::VitSpec(config), 1).total();
  };
  const double all = flops_of(c), none = flops_of(small_vit(false));
  c.compose_layers = "0";
  BOOST_TEST(flops_of(c) == (all + none) / 2);
  c.compose_layers = "0,1";
  BOOST_TEST(flops_of(c) == all);
  c.use_dcmha = false;
  BOOST_TEST(flops_of(c) == none);
}

BOOST_AUTO_TEST_SUITE_END()
