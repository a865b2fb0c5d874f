// Training of language models on text.
#pragma once
#include <optional>

#include "apps/train/config/data_sources.h"
#include "apps/train/task/evaluation.h"
#include "apps/train/task/task.h"
#include "braid/models/data/text/mixed_order.h"

namespace braid::apps {

class TextTask final : public TrainingTask {
 public:
  explicit TextTask(const TrainConfig& config);

  int64_t samples() const override { return order_.size(); }
  int64_t sample_tokens() const override { return order_.seq_len(); }
  std::string fingerprint() const override { return order_.fingerprint(); }
  bool continues(const TrainConfig& before, const models::RunState& saved) const override;
  void continue_after(const std::vector<models::EarlierLength>& earlier) override { order_.continue_after(earlier); }
  double samples_of_epochs(double epochs) const override { return order_.count_of_epochs(epochs); }
  std::vector<models::Batch> batches(int64_t first, const dist::ProcessMesh& mesh) const override;
  int64_t sample_at(int64_t place) const override { return order_.places(place, 1)[0].index; }
  std::vector<SourceUse> source_use(int64_t samples) const override;
  const models::text::Tokenizer* tokenizer() const override { return &train().tokenizer(); }
  std::unique_ptr<const models::ModelSpec> model_spec() const override;
  void check_model(const models::Model& model) const override;
  models::Batch typical_batch(const models::ModelSpec& model) const override;
  bool start(const models::Model& model, const dist::ProcessMesh& mesh) override;
  bool validate(LogRow& row, const Attempt& attempt) const override;
  std::optional<std::string> sample() const override { return evaluation_->sample(); }
  std::optional<double> chance() const override;
  std::string_view log_kind() const override { return "text"; }
  void count(LogRow& row, int64_t samples, double rate) const override;
  std::string size_text() const override;
  std::vector<std::string> data_notes() const override;
  std::vector<std::string> start_notes() const override;

 private:
  double mean_validation_loss(const std::vector<double>& losses) const;
  const models::text::Dataset& train() const { return order_.data(0); }

  const TrainConfig& config_;
  const std::vector<DataSource> sources_;  // of a mixture; else, also of one folder, none
  models::text::MixedOrder order_;
  std::vector<std::optional<models::text::Dataset>> validation_;  // of each source
  std::optional<Evaluation> evaluation_;
  int64_t longest_ = 0;  // of the model that is judged
};

}  // namespace braid::apps
