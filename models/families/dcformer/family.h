// DCFormer and its relatives as families of the registry: one configuration type and one model serve all.
#pragma once
#include "braid/models/families/dcformer/config.h"
#include "braid/models/families/dcformer/huggingface/dialect.h"
#include "braid/models/registry.h"

namespace braid::models {

class DcformerSpec final : public ModelSpec {
 public:
  explicit DcformerSpec(DcformerConfig config);  // resolved here

  const DcformerConfig& config() const { return config_; }
  std::string model_type() const override { return config_.model_type; }
  std::string config_json() const override;
  std::vector<ModelSetting> settings() const override;
  std::unique_ptr<const ModelSpec> with(const SettingTexts& settings) const override;
  std::unique_ptr<const ModelSpec> extrapolated(int64_t longest) const override;
  std::unique_ptr<const ModelSpec> mup_base() const override;
  std::unique_ptr<Model> make(RandomKey key, const dist::ProcessMesh& mesh = {}) const override;

  std::string training_warning() const override;
  bool generates_strictly() const override { return config_.pages(); }
  int64_t max_sequence_length() const override { return config_.block_size; }
  int64_t vocab_size() const override { return config_.vocab_size; }
  // info.cpp
  std::vector<InfoSection> info(const InfoRequest& request) const override;

  std::vector<std::string> config_notes(const std::string& text, const std::string& file) const override;
  std::string config_json_like(const std::string& text, const std::string& file,
                               std::optional<DType> stored) const override;
  PythonCode python_code() const override;  // huggingface/modeling_dcformer.py
  Folder folder() const override;

 private:
  DcformerConfig config_;
  const Dialect* dialect_;  // of folders that transformers reads; null: DCFormer's own
};

std::vector<ModelFamily> dcformer_families();  // one for each of model_types()

}  // namespace braid::models
