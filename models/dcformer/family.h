// DCFormer and DCPythia as families of the registry: one configuration type and one model serve both.
#pragma once
#include "braid/models/dcformer/config.h"
#include "braid/models/registry.h"

namespace braid::models {

class DcformerSpec final : public ModelSpec {
 public:
  explicit DcformerSpec(ModelConfig config);  // resolved here

  const ModelConfig& config() const { return config_; }
  std::string model_type() const override { return config_.model_type; }
  std::string config_json() const override;
  std::vector<ModelSetting> settings() const override;
  std::unique_ptr<const ModelSpec> with(const SettingTexts& settings) const override;
  std::unique_ptr<Model> make(RandomKey key, const dist::ProcessMesh& mesh = {}) const override;

 private:
  ModelConfig config_;
};

ModelFamily dcformer_family();
ModelFamily dcpythia_family();

}  // namespace braid::models
