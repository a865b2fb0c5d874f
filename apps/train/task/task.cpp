#include "apps/train/task/task.h"

#include "apps/cli/plan_report.h"
#include "apps/cli/text.h"
#include "apps/train/config/data_sources.h"
#include "apps/train/task/from_config.h"
#include "apps/train/task/image_task.h"
#include "apps/train/task/pair_task.h"
#include "apps/train/task/preference_task.h"
#include "apps/train/task/run_data.h"
#include "apps/train/task/text_task.h"
#include "braid/models/cost/trace.h"
#include "braid/models/data/vision/manifest.h"

namespace braid::apps {

models::Batch TrainingTask::typical_batch(const models::ModelSpec& model) const {
  return models::blank_batch(model, 1, sample_tokens());
}

std::vector<std::string> source_columns(const TrainingTask& task) {
  std::vector<std::string> columns;
  for (const char* column : {"loss", "val_loss"})
    for (const SourceUse& source : task.source_use(0)) columns.push_back(source_column(column, source.name));
  return columns;
}

std::string SourceUse::text() const {
  return str(sequences, " sequences, ", number("%.2f", 100 * share), " %, ", number("%.2f", epochs), " epochs");
}

std::vector<std::string> repetition_warnings(const std::vector<SourceUse>& use) {
  constexpr double many = 4;
  std::vector<std::string> warnings;
  for (const SourceUse& source : use)
    if (source.epochs > many)
      warnings.push_back(str("warning: source ", source.name, " is read ", number("%.1f", source.epochs),
                             " times over the run: expected at most ", shortest(many),
                             "; lower its weight in data.sources or train.steps, or prepare more text"));
  return warnings;
}

std::unique_ptr<TrainingTask> make_task(const TrainConfig& config) {
  const bool mixture = !config.data.sources.empty();  // of text
  const bool preferences = holds_preferences(config);
  if (!preferences) check_no_preference_settings(config);
  if (!mixture && models::vision::holds_images(config.data.path)) return std::make_unique<ImageTask>(config);
  check_no_image_settings(config);
  if (const auto pairs = models::PairTask::of_path(config.data.path))
    return std::make_unique<PairTrainingTask>(config, *pairs);
  if (preferences) return std::make_unique<PreferenceTask>(config);
  return std::make_unique<TextTask>(config);
}

std::unique_ptr<const models::ModelSpec> model_for_data(const TrainConfig& config) {
  const std::string& path = config.data.path;
  if (!names_data(config)) return model_spec(config, 0);
  if (path.empty()) return model_spec(config, vocabulary_of(config));
  if (const auto pairs = models::PairTask::of_path(path)) return pair_model_spec(config, *pairs);
  return models::vision::holds_images(path) ? image_model_spec(config, models::vision::read_image_manifest(path))
                                            : model_spec(config, vocabulary_of(config));
}

}  // namespace braid::apps
