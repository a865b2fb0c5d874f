// The encoder-decoder as a family of the registry.
#pragma once
#include "braid/models/families/seq2seq/config.h"
#include "braid/models/registry.h"

namespace braid::models {

class Seq2SeqSpec final : public ModelSpec {
 public:
  explicit Seq2SeqSpec(Seq2SeqConfig config);  // checked here

  const Seq2SeqConfig& config() const { return config_; }
  std::string model_type() const override { return "seq2seq"; }
  std::string config_json() const override { return write_seq2seq_config(config_); }
  std::vector<ModelSetting> settings() const override;
  std::unique_ptr<const ModelSpec> with(const SettingTexts& settings) const override;
  std::unique_ptr<const ModelSpec> mup_base() const override;
  std::unique_ptr<Model> make(RandomKey key, const dist::ProcessMesh& mesh = {}) const override;

  // A sample is a source and a target of the longest lengths.
  int64_t max_sequence_length() const override { return config_.max_source_length + config_.max_target_length; }
  int64_t vocab_size() const override { return config_.vocab_size; }

 private:
  Seq2SeqConfig config_;
};

ModelFamily seq2seq_family();

}  // namespace braid::models
