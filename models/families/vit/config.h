// The configuration of a Vision Transformer, under the keys of Hugging Face's ViT folders and, where those have none,
// keys of Braid.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "braid/autograd/convolution.h"
#include "braid/models/families/composition_settings.h"
#include "braid/models/families/vit/stem.h"
#include "braid/models/model_spec.h"
#include "braid/nn/transformer/mlp.h"

namespace braid::models {

struct VitConfig : CompositionSettings {
  int64_t hidden_size = 768, num_hidden_layers = 12, num_attention_heads = 12, intermediate_size = 3072;  // D L N F
  std::vector<int64_t> image_size = {224}, patch_size = {16};  // both sides, or height and width
  int64_t num_channels = 3, num_labels = 2;                    // C, K
  bool qkv_bias = true;                                        // all other linear layers have biases
  std::string hidden_act = "gelu";
  double layer_norm_eps = 1e-12;
  std::vector<int64_t> stem_channels;  // of the convolutions before the patches (stem.h)
  std::string pool_type = "tok";       // tok: a class token; gap: mean of the patches
  std::string posemb = "learn";        // or sincos2d
  bool rep_size = false;               // tanh(linear) before the classifier
  double hidden_dropout_prob = 0, drop_path_rate = 0, compose_dropout = 0;  // of training
  int64_t mup_base_width = 0;            // hidden_size that the learning rate was found for (training/mup.h); 0: no muP
  std::vector<std::string> class_names;  // by label, no setting (id2label of config.json); empty: not known

  bool operator==(const VitConfig&) const = default;
  Pixels image() const { return sides(image_size); }
  Pixels patch() const { return sides(patch_size); }
  // Pixels of the image after the convolutions, and of a patch, which they have halved.
  Pixels stem_image() const { return after_stem(image(), stem_channels.size()); }
  Pixels stem_patch() const { return {patch().rows >> stem_channels.size(), patch().columns >> stem_channels.size()}; }
  int64_t patch_channels() const { return stem_channels.empty() ? num_channels : stem_channels.back(); }
  Pixels grid() const { return {stem_image().rows / stem_patch().rows, stem_image().columns / stem_patch().columns}; }
  int64_t patches() const { return grid().rows * grid().columns; }
  bool class_token() const { return pool_type == "tok"; }
  int64_t tokens() const { return patches() + class_token(); }  // T
  nn::Activation activation() const;
  VitConfig mup_base() const;  // the model of width mup_base_width, with heads of the same width
  double mup_ratio() const { return mup_base_width == 0 ? 1 : double(hidden_size) / double(mup_base_width); }  // m
  // Dropout of any kind: a training step depends on the keys of its samples.
  bool random_training() const { return hidden_dropout_prob > 0 || drop_path_rate > 0 || compose_dropout > 0; }

 private:
  static Pixels sides(const std::vector<int64_t>& size) { return {size.front(), size.back()}; }
};

// The table of the settings; it points into `config`.
std::vector<Setting> vit_keys(VitConfig& config);
// Conditions on single settings and between them. Error(setting).
void check_config(const VitConfig& config);
// The configuration with these settings, checked.
VitConfig configure(VitConfig config, SettingTexts settings);
// vit-s16, vit-m16, vit-b16, vit-28, vit-32, and each with DCMHA, dc-vit-s16, ...
std::vector<std::string> vit_preset_names();
VitConfig vit_preset(const std::string& name);  // Error(setting) with the nearest name

// config_file.cpp
// config.json of a ViT folder or of Braid. Error(input).
VitConfig read_vit_config(const std::string& text, const std::string& file);
std::string write_vit_config(const VitConfig& config);
// The text with the fewest keys changed that make it describe `config` and weights of type `stored`; the text itself
// where it does.
std::string rewrite_vit_config(const std::string& text, const std::string& file, const VitConfig& config,
                               std::optional<DType> stored);
std::vector<std::string> vit_config_notes(const std::string& text, const std::string& file);

}  // namespace braid::models
