#include "braid/models/families/vit/config.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "braid/models/families/family_settings.h"

namespace braid::models {

namespace {

// Names of transformers.
const std::vector<std::pair<std::string, nn::Activation>> kActivations = {
    {"gelu", nn::Activation::gelu},           {"gelu_new", nn::Activation::gelu_tanh},
    {"gelu_tanh", nn::Activation::gelu_tanh}, {"gelu_pytorch_tanh", nn::Activation::gelu_tanh},
    {"gelu_fast", nn::Activation::gelu_tanh}, {"quick_gelu", nn::Activation::quick_gelu},
    {"relu", nn::Activation::relu},           {"silu", nn::Activation::silu},
    {"swish", nn::Activation::silu},          {"tanh", nn::Activation::tanh}};

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const auto& [name, kind] : kActivations) names.push_back(name);
  return names;
}

// The configuration of the experiments with DC-ViT: mean pooling, fixed positions, tanh GELU.
VitConfig base(int64_t D, int64_t L, int64_t N) {
  VitConfig c;
  c.hidden_size = D;
  c.num_hidden_layers = L;
  c.num_attention_heads = N;
  c.intermediate_size = 4 * D;
  c.hidden_act = "gelu_pytorch_tanh";
  c.layer_norm_eps = 1e-6;
  c.pool_type = "gap";
  c.posemb = "sincos2d";
  return c;
}

VitConfig large_images(int64_t D, int64_t N) {
  VitConfig c = base(D, 12, N);
  c.num_labels = 1000;
  c.rep_size = true;
  return c;
}

VitConfig small_images(int64_t side, int64_t channels) {
  VitConfig c = base(128, 6, 4);
  c.intermediate_size = 256;
  c.image_size = {side};
  c.patch_size = {4};
  c.num_channels = channels;
  c.num_labels = 10;
  return c;
}

const FamilyPresets<VitConfig>& presets() {
  static const FamilyPresets<VitConfig> table({{"vit-s16", large_images(384, 6)},
                                               {"vit-m16", large_images(512, 8)},
                                               {"vit-b16", large_images(768, 12)},
                                               {"vit-28", small_images(28, 1)},
                                               {"vit-32", small_images(32, 3)}});
  return table;
}

}  // namespace

nn::Activation VitConfig::activation() const {
  return std::ranges::find(kActivations, hidden_act, &std::pair<std::string, nn::Activation>::first)->second;
}

VitConfig VitConfig::mup_base() const { return mup_base_of(*this); }

// Bounds keep every product of sizes far below 2^63.
std::vector<Setting> vit_keys(VitConfig& c) {
  constexpr double kMaxSide = 1 << 14;
  std::vector<Setting> table = {
      {"hidden_size", &c.hidden_size, "model width D", between(1, 1 << 20)},
      {"num_hidden_layers", &c.num_hidden_layers, "blocks L", between(1, 1 << 14)},
      {"num_attention_heads", &c.num_attention_heads, "attention heads N", between(1, 1 << 14)},
      {"intermediate_size", &c.intermediate_size, "hidden width F of the FFN", between(1, 1 << 24)},
      {"image_size", &c.image_size, "pixels of an image's side, or height,width", between(1, kMaxSide)},
      {"patch_size", &c.patch_size, "pixels of a patch's side, or height,width", between(1, kMaxSide)},
      {"num_channels", &c.num_channels, "channels of an image: 1 grey, 3 red, green, blue", between(1, 1024)},
      {"num_labels", &c.num_labels, "classes", between(1, 1 << 24)},
      {"qkv_bias", &c.qkv_bias, "biases of queries, keys and values"},
      {"hidden_act", &c.hidden_act, "activation of the FFN", one_of(activation_names())},
      {"layer_norm_eps", &c.layer_norm_eps, "epsilon of the norms", {.min = 0, .max = 1, .min_open = true}},
      {"stem_channels", &c.stem_channels,
       "channels of convolutions before the patches, each of 3 x 3 with stride 2; empty: none", between(1, 1 << 16)},
      {"pool_type", &c.pool_type, "what the classifier reads: a class token, or the mean of all patches",
       one_of({"tok", "gap"})},
      {"posemb", &c.posemb, "positions: learned, or fixed sines and cosines", one_of({"learn", "sincos2d"})},
      {"rep_size", &c.rep_size, "a tanh layer before the classifier"},
  };
  for (Setting& key : composition_keys(c)) table.push_back(std::move(key));
  const Setting of_training[] = {
      {"hidden_dropout_prob", &c.hidden_dropout_prob, "dropout in training, after embedding, attention and FFN",
       from_below(0, 1)},
      {"drop_path_rate", &c.drop_path_rate, "stochastic depth in training: of the last block, rising from 0",
       from_below(0, 1)},
      {"compose_dropout", &c.compose_dropout, "dropout of the dynamic weights in training", from_below(0, 1)},
      mup_key(c.mup_base_width),
  };
  table.insert(table.end(), std::begin(of_training), std::end(of_training));
  return table;
}

void check_config(const VitConfig& config) {
  VitConfig c = config;
  check_rules(vit_keys(c));
  check(c.class_names.empty() || std::ssize(c.class_names) == c.num_labels, "vit",
        [&] { return str("expected a name for each of ", c.num_labels, " classes, found ", c.class_names.size()); });
  for (const auto& [name, size] : {std::pair{"image_size", &c.image_size}, {"patch_size", &c.patch_size}})
    need_setting(size->size() == 1 || size->size() == 2, name, "one number, or height and width",
                 str(size->size(), " numbers"));
  need_setting(c.hidden_size % c.num_attention_heads == 0, "num_attention_heads",
               str("a divisor of hidden_size = ", c.hidden_size), std::to_string(c.num_attention_heads));
  check_mup_base(c.mup_base_width, c.hidden_size, c.num_attention_heads);
  const Pixels image = c.image(), patch = c.patch();
  if (c.stem_channels.empty()) {
    need_setting(image.rows % patch.rows == 0 && image.columns % patch.columns == 0, "patch_size",
                 "a divisor of image_size = " + value_text(c.image_size), value_text(c.patch_size));
  } else {
    const size_t count = c.stem_channels.size();
    need_setting(count <= 10, "stem_channels", "at most 10 convolutions", std::to_string(count));
    const int64_t factor = int64_t{1} << count;
    need_setting(patch.rows % factor == 0 && patch.columns % factor == 0, "patch_size",
                 str("a multiple of ", factor, ", by which the convolutions of stem_channels divide"),
                 value_text(c.patch_size));
    const Pixels left = c.stem_image(), window = c.stem_patch();
    need_setting(left.rows % window.rows == 0 && left.columns % window.columns == 0, "patch_size",
                 str(factor, " times a divisor of the ", left.rows, " x ", left.columns,
                     " pixels after the convolutions of stem_channels"),
                 value_text(c.patch_size));
  }
  c.composing(c.num_hidden_layers);
  need_setting(c.posemb != "sincos2d" || (c.hidden_size % 4 == 0 && c.hidden_size > 4), "hidden_size",
               "a multiple of 4 above 4 with posemb=sincos2d", std::to_string(c.hidden_size));
  need_setting(c.posemb != "sincos2d" || !c.class_token(), "posemb", "learn with pool_type=tok", "sincos2d");
}

VitConfig configure(VitConfig c, SettingTexts settings) {
  apply_settings(vit_keys(c), std::move(settings), "vit");
  if (std::ssize(c.class_names) != c.num_labels) c.class_names.clear();  // those of other classes
  check_config(c);
  return c;
}

std::vector<std::string> vit_preset_names() { return presets().names(); }

VitConfig vit_preset(const std::string& name) { return presets().at(name); }

}  // namespace braid::models
