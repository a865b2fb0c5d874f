// ViT and DC-ViT as one family of the registry.
#pragma once
#include "braid/models/families/vit/config.h"
#include "braid/models/registry.h"

namespace braid::models {

class VitSpec final : public ModelSpec {
 public:
  explicit VitSpec(VitConfig config);  // checked here

  const VitConfig& config() const { return config_; }
  std::string model_type() const override { return "vit"; }
  std::string config_json() const override { return write_vit_config(config_); }
  std::vector<ModelSetting> settings() const override;
  std::unique_ptr<const ModelSpec> with(const SettingTexts& settings) const override;
  std::unique_ptr<Model> make(RandomKey key, const dist::ProcessMesh& mesh = {}) const override;

  std::vector<std::string> config_notes(const std::string& text, const std::string& file) const override;
  std::string config_json_like(const std::string& text, const std::string& file,
                               std::optional<DType> stored) const override;
  Folder folder() const override;

 private:
  VitConfig config_;
};

ModelFamily vit_family();

}  // namespace braid::models
