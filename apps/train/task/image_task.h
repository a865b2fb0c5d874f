// Training of image models on images.
#pragma once
#include <optional>

#include "apps/train/task/task.h"
#include "braid/models/data/vision/batches.h"
#include "braid/models/image_model.h"

namespace braid::apps {

class ImageTask final : public TrainingTask {
 public:
  // Error(setting) names settings that are for text alone.
  explicit ImageTask(const TrainConfig& config);

  int64_t samples() const override { return train_.size(); }
  int64_t sample_tokens() const override { return 1; }
  std::string fingerprint() const override { return train_.manifest().fingerprint; }
  std::vector<models::Batch> batches(int64_t first, const dist::ProcessMesh& mesh) const override;
  int64_t sample_at(int64_t place) const override { return sampler_.at(place); }
  std::vector<std::pair<std::string, std::string>> model_files() const override;
  std::unique_ptr<const models::ModelSpec> model_spec() const override;
  void check_model(const models::Model& model) const override;
  bool start(const models::Model& model, const dist::ProcessMesh& mesh) override;
  bool validate(LogRow& row, const Attempt& attempt) const override;
  std::string_view log_kind() const override { return "images"; }
  void count(LogRow& row, int64_t samples, double rate) const override;
  std::string size_text() const override;
  std::vector<std::string> start_notes() const override { return notes_; }

 private:
  const TrainConfig& config_;
  models::vision::ImageDataset train_;
  std::optional<models::vision::ImageDataset> validation_;  // none with eval.interval = 0
  models::text::Sampler sampler_;
  models::vision::TrainingImages images_;
  std::optional<models::vision::Preprocessing> preprocessing_;  // of the model that is continued
  std::vector<std::string> notes_;
  const models::ImageModel* model_ = nullptr;
  const dist::ProcessMesh* mesh_ = nullptr;
};

// Error(setting) when a setting of augment.* differs from its default, for data that are no images.
void check_no_image_settings(const TrainConfig& config);

}  // namespace braid::apps
