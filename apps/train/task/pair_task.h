// Training of encoder-decoders on pairs of sequences that the program makes (models/families/seq2seq/pairs.h).
#pragma once
#include "apps/train/task/task.h"
#include "braid/models/data/sampler.h"
#include "braid/models/families/seq2seq/greedy.h"

namespace braid::apps {

class PairTrainingTask final : public TrainingTask {
 public:
  // Error(setting) names settings that are for text alone.
  PairTrainingTask(const TrainConfig& config, models::PairTask task);

  int64_t samples() const override { return task_.size(models::text::Split::train); }
  int64_t sample_tokens() const override { return task_.source_length() + task_.target_length(); }
  std::string fingerprint() const override { return task_.fingerprint(); }
  std::vector<models::Batch> batches(int64_t first, const dist::ProcessMesh& mesh) const override;
  int64_t sample_at(int64_t place) const override { return sampler_.at(place); }
  std::unique_ptr<const models::ModelSpec> model_spec() const override;
  void check_model(const models::Model& model) const override;
  bool start(const models::Model& model, const dist::ProcessMesh& mesh) override;
  // Loss by teacher forcing, and the share of pairs that are decoded without a mistake as task_acc.
  bool validate(LogRow& row, const Attempt& attempt) const override;
  // Some pairs of the validation split and how the model decodes them.
  std::optional<std::string> sample() const override;
  std::string_view log_kind() const override { return "text"; }
  void count(LogRow& row, int64_t samples, double rate) const override;
  std::string size_text() const override;

 private:
  std::vector<std::vector<int64_t>> validation_pairs() const;  // of this data rank, batch by batch

  const TrainConfig& config_;
  models::PairTask task_;
  models::text::Sampler sampler_;
  const models::Seq2Seq* model_ = nullptr;
  const dist::ProcessMesh* mesh_ = nullptr;
};

}  // namespace braid::apps
