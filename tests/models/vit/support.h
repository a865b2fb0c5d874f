// A ViT small enough for loops over every head, query and key.
#pragma once
#include "braid/models/vit/model.h"

namespace braid::test {

// Two blocks of two heads; pictures of 4 x 6 pixels in patches of 2 x 2.
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

}  // namespace braid::test
