// A ViT small enough for loops over every head, query and key.
#pragma once
#include "braid/autograd.h"
#include "braid/models/families/vit/model.h"
#include "braid/models/registry.h"
#include "tests/models/randomise.h"
#include "tests/models/support.h"
#include "tests/support/compare.h"
#include "tests/support/gradcheck_model.h"

namespace braid::test {

// Two blocks of two heads; images of 4 x 6 pixels in patches of 2 x 2.
inline models::VitConfig small_vit(bool compose = true) {
  models::VitConfig c;
  c.hidden_size = 8;
  c.num_hidden_layers = 2;
  c.num_attention_heads = 2;
  c.intermediate_size = 6;
  c.image_size = {4, 6};
  c.patch_size = {2};
  c.num_channels = 2;
  c.num_labels = 3;
  c.pool_type = "gap";
  c.posemb = "sincos2d";
  c.layer_norm_eps = 1e-6;
  c.use_dcmha = compose;
  return c;
}

constexpr RandomKey kVitKey{5, 0};

// With random weights of f64.
inline models::Vit random_vit(const models::VitConfig& config) {
  models::Vit model(config, kVitKey);
  model.to(DType::f64);
  randomise(model, kVitKey, 0.4);
  return model;
}

// B random images, of classes 0, 1, ...
inline models::Batch vit_batch(const models::VitConfig& c, int64_t B, uint64_t stream = 9) {
  std::vector<int64_t> labels;
  for (int64_t b = 0; b < B; ++b) labels.push_back(b % c.num_labels);
  return {{"pixel_values", randn({B, c.num_channels, c.image().rows, c.image().columns}, {7, stream}, DType::f64)},
          {"labels", from_vector(labels, {B})}};
}

// The derivative of the loss by images and parameters.
inline GradcheckResult gradcheck_vit(const models::VitConfig& c) {
  models::Vit model = random_vit(c);
  const models::Batch batch = vit_batch(c, 2);
  return gradcheck_model(model,
                         [&](const std::vector<Tensor>& in) {
                           return model.loss_sum({{"pixel_values", in[0]}, {"labels", batch.at("labels")}});
                         },
                         {batch.at("pixel_values")});
}

// A saved model comes back with its configuration and the same logits.
inline void check_vit_folder(const models::VitConfig& c) {
  const models::Vit model = random_vit(c);
  const TempFolder scratch;
  models::save_model(model, nullptr, scratch.path);
  const models::LoadedModel again = models::load_model(scratch.path, {.dtype = DType::f64});
  BOOST_TEST(again.notes.empty());
  const auto& read = dynamic_cast<const models::Vit&>(*again.model);
  BOOST_TEST((read.config() == model.config()));
  const Tensor x = vit_batch(model.config(), 3).at("pixel_values");
  BOOST_TEST(is_close(read.logits(x), model.logits(x), 0));
}

}  // namespace braid::test
