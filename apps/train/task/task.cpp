#include "apps/train/task/task.h"

#include "apps/train/task/from_config.h"
#include "apps/train/task/image_task.h"
#include "apps/train/task/pair_task.h"
#include "apps/train/task/run_data.h"
#include "apps/train/task/text_task.h"
#include "braid/models/cost/trace.h"
#include "braid/models/data/vision/manifest.h"

namespace braid::apps {

models::Batch TrainingTask::typical_batch(const models::ModelSpec& model) const {
  return models::blank_batch(model, 1, sample_tokens());
}

std::unique_ptr<TrainingTask> make_task(const TrainConfig& config) {
  if (models::vision::holds_images(config.data.path)) return std::make_unique<ImageTask>(config);
  check_no_image_settings(config);
  if (const auto pairs = models::PairTask::of_path(config.data.path))
    return std::make_unique<PairTrainingTask>(config, *pairs);
  return std::make_unique<TextTask>(config);
}

std::unique_ptr<const models::ModelSpec> model_for_data(const TrainConfig& config) {
  const std::string& path = config.data.path;
  if (path.empty()) return model_spec(config, 0);
  if (const auto pairs = models::PairTask::of_path(path)) return pair_model_spec(config, *pairs);
  return models::vision::holds_images(path) ? image_model_spec(config, models::vision::read_image_manifest(path))
                                            : model_spec(config, vocabulary_of(config));
}

}  // namespace braid::apps
