#include "apps/train/task/image_task.h"

#include "apps/cli/signals.h"
#include "apps/cli/text.h"
#include "apps/train/config/origin.h"
#include "apps/train/task/from_config.h"
#include "braid/models/eval/classification.h"

namespace braid::apps {

using models::vision::ImageDataset;

namespace {

models::vision::TrainingImages changes_of(const TrainConfig& config) {
  const TrainConfig::Augment& a = config.augment;
  return {.seed = static_cast<uint64_t>(config.run.seed),
          .augment = {.crop_padding = a.crop_padding,
                      .flip = a.flip,
                      .randaugment_ops = a.randaugment_ops,
                      .randaugment_magnitude = a.randaugment_magnitude,
                      .erase = a.erase},
          .label_smoothing = a.label_smoothing,
          .mixup = a.mixup,
          .sample_keys = false};
}

std::optional<ImageDataset> validation_of(const TrainConfig& config) {
  if (config.eval.interval == 0) return std::nullopt;
  return ImageDataset(config.data.path, models::text::Split::val);
}

}  // namespace

ImageTask::ImageTask(const TrainConfig& config)
    : config_(config),
      train_(config.data.path, models::text::Split::train),
      validation_(validation_of(config)),
      sampler_(train_.size(), static_cast<uint64_t>(config.run.seed)),
      images_(changes_of(config)) {
  reject_text_settings(config, "holds images");
  check(config.sample.interval == 0, ErrorKind::setting, [&] {
    return str("sample.interval is for text, and ", config.data.path, " holds images: expected 0, found ",
               config.sample.interval);
  });
  if (config.train.init_from.empty()) return;
  const std::filesystem::path folder = continued_folder(config);
  preprocessing_ = models::vision::read_preprocessing(folder);
  const auto spec = model_in(folder);
  const auto* image = dynamic_cast<const models::ImageModelSpec*>(spec.get());
  if (image && image->class_names().empty())
    notes_.push_back("the model in " + folder.string() +
                     " has no names of its classes (id2label in config.json): class " + "k of " + config.data.path +
                     " is taken for its output k");
}

std::vector<models::Batch> ImageTask::batches(int64_t first, const dist::ProcessMesh& mesh) const {
  return models::vision::step_batches(train_, sampler_, first, config_.train.batch_size, config_.train.accumulate, mesh,
                                      images_);
}

std::vector<std::pair<std::string, std::string>> ImageTask::model_files() const {
  return {{models::vision::kPreprocessorFile,
           preprocessing_ ? preprocessing_->text : models::vision::preprocessor_config(train_.manifest())}};
}

std::unique_ptr<const models::ModelSpec> ImageTask::model_spec() const {
  return image_model_spec(config_, train_.manifest());
}

void ImageTask::check_model(const models::Model& model) const {
  check(dynamic_cast<const models::ImageModel*>(&model) != nullptr, ErrorKind::input,
        [&] { return "a model of type " + model.spec()->model_type() + " does not read images"; });
}

bool ImageTask::start(const models::Model& model, const dist::ProcessMesh& mesh) {
  model_ = &dynamic_cast<const models::ImageModel&>(model);
  mesh_ = &mesh;
  images_.sample_keys = model_->random_training();
  if (config_.train.init_from.empty()) return true;
  const models::vision::ModelInput input =
      models::vision::model_input(train_.manifest(), config_.data.path, *model_, preprocessing_, notes_);
  train_.take_as(input);
  if (validation_) validation_->take_as(input);
  for (std::string& note : notes_) note = "note: " + note;
  return true;
}

bool ImageTask::validate(LogRow& row, const Attempt&) const {
  models::eval::ClassificationCounts counts(model_->classes());
  for (const std::vector<int64_t>& indices :
       models::vision::validation_images(*validation_, config_.train.batch_size, config_.eval.samples, *mesh_)) {
    if (mesh_->world.any(StopSignals::requested())) return false;
    if (indices.empty()) continue;  // a data rank may have no image of a batch
    const models::Batch batch = models::vision::read_batch(*validation_, indices);
    counts.add(*model_, batch);
  }
  counts.sum_over(mesh_->data);
  row["val_loss"] = counts.loss();
  row["val_top1"] = counts.top(1);
  row["val_top5"] = counts.top(5);
  row["val_ece"] = counts.calibration_error();
  return true;
}

void ImageTask::count(LogRow& row, int64_t samples, double rate) const {
  row["pictures"] = static_cast<double>(samples);
  row["pictures_per_s"] = rate;
}

std::string ImageTask::size_text() const {
  const models::vision::ImageManifest& m = train_.manifest();
  return str(train_.size(), " train images of ", m.channels, " x ", m.height, " x ", m.width, " in ", m.classes.size(),
             " classes");
}

void check_no_image_settings(const TrainConfig& config) {
  check(config.augment == TrainConfig::Augment(), ErrorKind::setting, [&] {
    return "augment.* changes images, and " + config.data.path +
           " holds none: expected a folder made by braid prepare --images, or the defaults of all augment settings";
  });
}

}  // namespace braid::apps
