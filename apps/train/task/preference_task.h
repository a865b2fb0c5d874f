// Direct preference optimization of language models on pairs of answers (models/training/preferences.h).
#pragma once
#include <optional>

#include "apps/train/task/evaluation.h"
#include "apps/train/task/task.h"
#include "braid/models/data/sampler.h"
#include "braid/models/data/text/preference_data.h"
#include "braid/models/training/preferences.h"

namespace braid::apps {

// The reference is the weights that the run starts from. Its losses are computed for all pairs before the first step,
// by the model itself, and stored in the run's folder, where a resumed run reads them: there is no second model.
class PreferenceTask final : public TrainingTask {
 public:
  static constexpr const char* kReferenceFile = "reference.safetensors";  // f64 losses, two of each pair of a split

  // Error(setting) names settings that do not go with preferences.
  explicit PreferenceTask(const TrainConfig& config);

  int64_t samples() const override { return train_.data.size(); }
  int64_t sample_tokens() const override { return train_.data.sequences().seq_len(); }
  std::string fingerprint() const override { return train_.data.sequences().fingerprint(); }
  std::vector<models::Batch> batches(int64_t first, const dist::ProcessMesh& mesh) const override;
  void continue_after(const std::vector<models::EarlierLength>& earlier) override;
  int64_t sample_at(int64_t place) const override { return sampler_.at(place); }
  const models::text::Tokenizer* tokenizer() const override { return &train_.data.sequences().tokenizer(); }
  std::unique_ptr<const models::ModelSpec> model_spec() const override;
  void check_model(const models::Model& model) const override;
  models::Batch typical_batch(const models::ModelSpec& model) const override;
  std::vector<std::pair<std::string, std::string>> start_work(const models::ModelSpec& model) const override;
  bool start(const models::Model& model, const dist::ProcessMesh& mesh) override;
  bool validate(LogRow& row, const Attempt& attempt) const override;
  std::optional<std::string> sample() const override { return evaluation_->sample(); }
  std::string_view log_kind() const override { return "preferences"; }
  void count(LogRow& row, int64_t samples, double rate) const override;
  void measure_step(LogRow& row, const std::vector<models::Batch>& batches,
                    const models::StepMetrics& metrics) const override;
  std::string size_text() const override;
  std::vector<std::string> data_notes() const override;

 private:
  struct Part {
    models::text::PreferenceData data;
    std::vector<double> reference = {};                            // losses, in the order of the sequences of all pairs
    models::Batch batch(const std::vector<int64_t>& pairs) const;  // with them
  };
  std::vector<double> losses(const models::Batch& batch) const;
  std::optional<std::vector<double>> reference_losses(const models::text::PreferenceData& data) const;
  void read_reference();

  const TrainConfig& config_;
  const models::PreferenceOptions options_;
  Part train_;
  std::optional<Part> validation_;  // none where eval.interval = 0 and the data have none
  models::text::Sampler sampler_;
  std::optional<Evaluation> evaluation_;  // for samples
  const models::LanguageModel* model_ = nullptr;
  const dist::ProcessMesh* mesh_ = nullptr;
};

// Error(setting) when a setting of dpo.* differs from its default, for data that are no preferences.
void check_no_preference_settings(const TrainConfig& config);

}  // namespace braid::apps
