// The estimate of activations against what a step of a ViT keeps between forward and backward.
#include <boost/test/unit_test.hpp>

#include "braid/models/registry.h"
#include "braid/models/vit/model.h"
#include "braid/tensor/memory.h"
#include "tests/models/vit/support.h"

using namespace braid;
using namespace braid::test;
using models::Vit, models::VitConfig;

BOOST_AUTO_TEST_SUITE(vit_memory)

BOOST_AUTO_TEST_CASE(activations_are_what_a_step_keeps) {
  VitConfig mean = small_vit();
  mean.hidden_size = 64, mean.num_attention_heads = 4, mean.intermediate_size = 256;
  mean.num_hidden_layers = 4, mean.image_size = {16}, mean.patch_size = {2};
  VitConfig plain = mean, half = mean, token = mean, wide = mean, stem = mean;
  plain.use_dcmha = false;
  half.compose_layers = {0, 1};
  token.pool_type = "tok", token.posemb = "learn";
  wide.intermediate_size = 512, wide.rank = 4;
  stem.stem_channels = {16};
  const std::pair<const char*, VitConfig> cases[] = {{"DC-ViT", mean},       {"ViT", plain}, {"half composed", half},
                                                     {"class token", token}, {"wide", wide}, {"stem", stem}};
  for (const auto& [name, config] : cases) {
    for (const bool recompute : {false, true}) {
      Vit model(config, kVitKey);
      model.set_recompute(recompute);
      const models::Batch batch{{"pixel_values", randn({8, 2, 16, 16}, kVitKey)},
                                {"labels", vit_batch(config, 8).at("labels")}};
      const int64_t before = memory_stats(kCpu).current;
      const Tensor loss = model.loss_sum(batch);
      const auto kept = static_cast<double>(memory_stats(kCpu).current - before);
      const double estimate = model.spec()->training_memory({.batch = 8, .recompute = recompute}).activations;
      BOOST_TEST_CONTEXT(name << " recompute=" << recompute << ": " << kept << " of " << estimate) {
        BOOST_TEST(kept / estimate < 1.01);
        if (!recompute) BOOST_TEST(kept / estimate > 0.99);  // with recomputation one block more exists in backward
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
