// Dcformers of random weights, for tests that compare ways to compute the same.
#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "braid/models/families/dcformer/config_keys.h"
#include "braid/nn/attention/variant.h"
#include "braid/nn/transformer/depth.h"
#include "tests/models/support.h"
#include "tests/support/random.h"

namespace braid::test {

using Keys = std::vector<std::pair<std::string, std::string>>;

// The weights of the dynamic terms, which begin at almost nothing, become so large that heads mix.
inline void mix_heads(models::Dcformer& model) {
  for (nn::NamedTensor& p : nn::parameters(model)) {
    const auto has = [&](const std::string& part) { return p.name.find(part) != std::string::npos; };
    const bool at_rest = has("qkw") || has(".dd") || p.name.starts_with("dynamic_dense") ||
                         p.name.starts_with("dense_bs") || p.name.starts_with("depth.");
    const bool of_variant = std::ranges::any_of(nn::attention_variants(), [&](const nn::AttentionVariantRule& rule) {
      return rule.identity_start && has("." + rule.name + ".");
    });
    if (at_rest || of_variant) p.value.copy_(normal_tensor(p.value.shape(), 0.3, child({9, 9}, p.name.c_str())));
  }
}

// small_config() in `dtype`, with little mixing, as training begins.
inline models::Dcformer small_model(DType dtype = DType::f64) {
  models::Dcformer model(small_config(), {1, 0});
  model.to(dtype);
  return model;
}

// Frozen, its dynamic weights large enough to matter.
inline models::Dcformer frozen_model(const models::DcformerConfig& c, DType dtype = DType::f64) {
  models::Dcformer model(c, {5, 0});
  nn::freeze(model);
  model.to(dtype);
  for (nn::NamedTensor& p : nn::parameters(model)) {
    const bool small = p.name.find("dyn_w_proj.") != std::string::npos && !p.name.ends_with("dw1");
    if (small) p.value.copy_(normal_tensor(p.value.shape(), 0.3, child({9, 9}, p.name.c_str())));
  }
  return model;
}

// The settings of a model with each attention variant, with several on some layers, with each name of `compose`, and
// with each kind of connections over depth.
inline std::vector<Keys> variant_keys() {
  std::vector<Keys> list = {{{"attention", "diff-v2,gated,xsa"}},
                            {{"attention", "knocking,xsa"}, {"attention_layers", "1"}, {"compose_layers", "0,2"}}};
  list.push_back({{"attention", "value-residual,gated"}, {"attention_layers", "last:2"}, {"compose_layers", "0,2"}});
  for (const char* both : {"mta,sink", "diff-v2,iha,sink"})
    list.push_back({{"attention", both}, {"use_dcmha", "false"}});
  for (const models::ComposePreset& preset : models::dcformer_compose_presets())
    list.push_back({{"compose", preset.name}});
  list.push_back({{"compose", "none"}});
  for (const nn::AttentionVariantRule& rule : nn::attention_variants())
    list.push_back({{"attention", rule.name}, {"use_dcmha", "false"}});
  for (const nn::DepthRule& rule : nn::depth_rules()) list.push_back({{"residual", rule.name}, {"n_kv_head", "2"}});
  return list;
}

// A preset made small, three layers, two of them with a window of 8, and `keys` on top.
inline models::Dcformer mixing_model(const std::string& preset, const Keys& keys, DType dtype = DType::f64) {
  Keys all = {{"dim", "32"},        {"n_head", "4"},      {"n_layer", "3"},     {"intermediate_size", "48"},
              {"vocab_size", "40"}, {"window_size", "8"}, {"block_size", "96"}, {"initializer_std", "0.3"},
              {"window_type", "LG"}};
  all.insert(all.end(), keys.begin(), keys.end());
  models::Dcformer model(models::configure(preset, all), {5, 0});
  mix_heads(model);
  model.to(dtype);
  return model;
}

}  // namespace braid::test
