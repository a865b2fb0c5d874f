#include "braid/models/families/vit/family.h"

#include <set>

#include "braid/models/families/family_settings.h"
#include "braid/models/families/vit/model.h"
#include "braid/models/folders/folder.h"

namespace braid::models {

namespace {

constexpr const char* kBiases = "qkv_bias of config.json names the biases";

bool in_use(const VitConfig& c, const std::string& name) {
  return composition_in_use(c, name == "compose_dropout" ? "profile.rank" : name);  // both are of the dynamic terms
}

// Settings of training may have other values when a trained model continues, and those of where new weights are.
bool may_change(const std::string& name) {
  static const std::set<std::string> of_training = {"hidden_dropout_prob", "drop_path_rate", "compose_dropout",
                                                    "mup_base_width"};
  return of_training.contains(name) || composition_may_change(name);
}

FolderTable published_folder() {
  using How = TensorRow::How;
  const std::string attention = "attention.attention.";
  return {.architecture = "ViTForImageClassification",
          .base = "ViTModel",
          .prefix = "vit.",
          .last_kind = "classifier",
          .layers = "vit.encoder.layer.",
          .model = {{"patches", {"vit.embeddings.patch_embeddings.projection"}},
                    {"stem", {"vit.embeddings.stem"}},
                    {"class_token", {"vit.embeddings.cls_token"}},
                    {"positions", {"vit.embeddings.position_embeddings"}},
                    {"norm", {"vit.layernorm"}},
                    {"pre_logits", {"pre_logits"}},
                    {"classifier", {"classifier"}}},
          .layer = {{"attention.wqkv", {attention + "query", attention + "key", attention + "value"}, How::parts},
                    {"attention.wo", {"attention.output.dense"}},
                    {"attention.out_bias", {"attention.output.dense.bias"}},
                    {"attention", {"attention.attention"}},
                    {"mlp.w1", {"intermediate.dense"}},
                    {"mlp.w2", {"output.dense"}},
                    {"attention_norm", {"layernorm_before"}},
                    {"mlp_norm", {"layernorm_after"}}},
          // Weights of the model without a classifier, and of training by masked images.
          .ignored = {"pooler.", "embeddings.mask_token"},
          .surplus = {{"query.bias", kBiases}, {"key.bias", kBiases}}};
}

}  // namespace

VitSpec::VitSpec(VitConfig config) : config_(std::move(config)) { check_config(config_); }

std::vector<ModelSetting> VitSpec::settings() const {
  VitConfig copy = config_;
  return model_settings(
      "vit", vit_keys(copy), [&](const std::string& name) { return in_use(config_, name); }, may_change);
}

std::unique_ptr<const ModelSpec> VitSpec::with(const SettingTexts& settings) const {
  return std::make_unique<VitSpec>(configure(config_, settings));
}

std::unique_ptr<const ModelSpec> VitSpec::with_class_names(std::vector<std::string> names) const {
  VitConfig named = config_;
  named.class_names = std::move(names);
  return std::make_unique<VitSpec>(named);
}

std::unique_ptr<const ModelSpec> VitSpec::mup_base() const {
  if (config_.mup_base_width == 0) return nullptr;
  return std::make_unique<VitSpec>(config_.mup_base());
}

std::unique_ptr<Model> VitSpec::make(RandomKey key, const dist::ProcessMesh& mesh) const {
  return std::make_unique<Vit>(config_, key, mesh);
}

std::vector<std::string> VitSpec::config_notes(const std::string& text, const std::string& file) const {
  return vit_config_notes(text, file);
}

std::string VitSpec::config_json_like(const std::string& text, const std::string& file,
                                      std::optional<DType> stored) const {
  return rewrite_vit_config(text, file, config_, stored);
}

Folder VitSpec::folder() const {
  FolderTable table = published_folder();
  table.heads = table.kv_heads = config_.num_attention_heads;
  table.head_size = config_.hidden_size / config_.num_attention_heads;
  return Folder(*this, table);
}

std::unique_ptr<const ModelSpec> Vit::spec() const { return std::make_unique<VitSpec>(config_); }

ModelFamily vit_family() {
  return {.model_type = "vit",
          .presets = vit_preset_names(),
          .settings = VitSpec(VitConfig()).settings(),
          .read = [](const std::string& text, const std::string& file) -> std::unique_ptr<const ModelSpec> {
            return std::make_unique<VitSpec>(read_vit_config(text, file));
          },
          .configure = [](const std::string& preset, const SettingTexts& settings) -> std::unique_ptr<const ModelSpec> {
            return std::make_unique<VitSpec>(configure(preset.empty() ? VitConfig() : vit_preset(preset), settings));
          }};
}

}  // namespace braid::models
