// The estimate of activations against what a step of a ViT keeps between forward and backward.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/models/families/vit/model.h"
#include "tests/models/families/vit/support.h"
#include "tests/models/kept.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(vit_memory)

using models::Vit, models::VitConfig;

namespace {

constexpr int64_t kImages = 8;

Kept kept_by_step(VitConfig config, int64_t blocks, DType dtype, bool recompute) {
  config.num_hidden_layers = blocks;
  Vit model(config, kVitKey);
  model.to(dtype);
  model.set_recompute(recompute);
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < kImages; ++i) keys.push_back(i);
  const auto size = config.image();
  const models::Batch batch{
      {"pixel_values", randn({kImages, config.num_channels, size.rows, size.columns}, kVitKey, DType::f32).to(dtype)},
      {"labels", vit_batch(config, kImages).at("labels")},
      {models::kSampleKeys, from_vector(keys, {kImages})}};
  return test::kept_by_step(model, batch,
                            {.batch = kImages, .bytes_per_element = size_of(dtype), .recompute = recompute});
}

}  // namespace

BOOST_AUTO_TEST_CASE(activations_are_what_a_step_keeps) {
  VitConfig mean = small_vit();
  mean.hidden_size = 64, mean.num_attention_heads = 4, mean.intermediate_size = 256;
  mean.image_size = {16}, mean.patch_size = {2};
  VitConfig plain = mean, token = mean, wide = mean, stem = mean, dropout = mean;
  plain.use_dcmha = false;
  VitConfig quick = plain;
  token.pool_type = "tok", token.posemb = "learn";
  wide.intermediate_size = 512, wide.rank = 4;
  stem.image_size = {32}, stem.patch_size = {4}, stem.stem_channels = {48, 32};
  quick.hidden_act = "quick_gelu";
  dropout.hidden_dropout_prob = 0.1, dropout.compose_dropout = 0.1;
  const std::pair<const char*, VitConfig> cases[] = {{"DC-ViT", mean},    {"ViT", plain}, {"class token", token},
                                                     {"wide", wide},      {"stem", stem}, {"quick_gelu", quick},
                                                     {"dropout", dropout}};
  for (const auto& [name, config] : cases) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Kept two = kept_by_step(config, 2, dtype, false), block = kept_by_step(config, 3, dtype, false) - two;
      // With recomputation each block keeps its input; the estimate has one block more, which backward rebuilds.
      const Kept again = kept_by_step(config, 2, dtype, true);
      BOOST_TEST_CONTEXT(name << " " << str(dtype) << ": " << two.measured << " of " << two.estimate << ", a block "
                              << block.measured << " of " << block.estimate << ", recomputed " << again.measured
                              << " of " << again.estimate) {
        BOOST_TEST(std::fabs(block.ratio() - 1) < 1e-3);
        BOOST_TEST(std::fabs(two.ratio() - 1) < 5e-3);
        BOOST_TEST(std::fabs(again.measured / (again.estimate - block.estimate) - 1) < 0.02);
      }
    }
  }
  VitConfig half = mean;
  half.compose_layers = {0, 1};
  const Kept block = kept_by_step(half, 3, DType::f32, false) - kept_by_step(half, 2, DType::f32, false);
  BOOST_TEST(std::fabs(block.ratio() - 1) < 1e-3);
}

BOOST_AUTO_TEST_SUITE_END()
