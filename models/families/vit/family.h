// ViT and DC-ViT as one family of the registry.
#pragma once
#include "braid/models/families/vit/config.h"
#include "braid/models/image_model.h"
#include "braid/models/registry.h"

namespace braid::models {

class VitSpec final : public ImageModelSpec {
 public:
  explicit VitSpec(VitConfig config);  // checked here

  const VitConfig& config() const { return config_; }
  std::string model_type() const override { return "vit"; }
  std::string config_json() const override { return write_vit_config(config_); }
  int64_t classes() const override { return config_.num_labels; }
  const std::vector<std::string>& class_names() const override { return config_.class_names; }
  std::unique_ptr<const ModelSpec> with_class_names(std::vector<std::string> names) const override;
  std::vector<ModelSetting> settings() const override;
  std::unique_ptr<const ModelSpec> with(const SettingTexts& settings) const override;
  std::unique_ptr<const ModelSpec> mup_base() const override;
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
