#include "apps/train/task/text_task.h"

#include "apps/train/config/flops.h"
#include "apps/train/config/origin.h"
#include "apps/train/task/from_config.h"
#include "apps/train/task/run_data.h"
#include "braid/models/data/tasks/tasks.h"
#include "braid/models/data/text/batches.h"

namespace braid::apps {

TextTask::TextTask(const TrainConfig& config)
    : config_(config),
      order_(training_data(config), static_cast<uint64_t>(config.run.seed)),
      validation_(validation_data(config)) {}

std::vector<models::Batch> TextTask::batches(int64_t first, const dist::ProcessMesh& mesh) const {
  return models::text::step_batches(order_, first, config_.train.batch_size, config_.train.accumulate, mesh,
                                    config_.model.dropout > 0 ? std::optional(dropout_key(config_)) : std::nullopt);
}

std::unique_ptr<const models::ModelSpec> TextTask::model_spec() const {
  auto spec = apps::model_spec(config_, train().tokenizer().vocab_size());
  check_prompt(config_, *spec, train().tokenizer());
  check_same_tokenizer(config_, train().manifest());
  return spec;
}

void TextTask::check_model(const models::Model& model) const {
  const auto* text = dynamic_cast<const models::LanguageModel*>(&model);
  check(text != nullptr, ErrorKind::input,
        [&] { return "a model of type " + model.spec()->model_type() + " does not model text"; });
  check(!train().separates_documents() || text->separates_documents(), ErrorKind::setting, [&] {
    return "a model of type " + model.spec()->model_type() +
           " cannot keep attention within documents: expected data.documents=joined, found " + config_.data.documents;
  });
}

models::Batch TextTask::typical_batch(const models::ModelSpec& model) const {
  return apps::typical_batch(model, train());
}

void TextTask::start(const models::Model& model, const dist::ProcessMesh& mesh) {
  const auto& text = dynamic_cast<const models::LanguageModel&>(model);
  longest_ = text.max_sequence_length();
  evaluation_.emplace(config_, text, mesh, train().tokenizer(), validation_ ? &*validation_ : nullptr);
}

bool TextTask::validate(LogRow& row, const Attempt& attempt) const {
  const auto loss = evaluation_->validation_loss();
  if (!loss) return false;
  std::optional<double> accuracy = not_measured;
  if (config_.eval.tasks > 0) attempt("task accuracy", [&] { accuracy = evaluation_->task_accuracy(); });
  if (!accuracy) return false;
  row["val_loss"] = *loss;
  row["task_acc"] = *accuracy;
  return true;
}

std::optional<double> TextTask::chance() const {
  return models::text::task_chance(models::text::parse_task_set(config_.eval.task_set));
}

void TextTask::count(LogRow& row, int64_t samples, double rate) const {
  row["tokens"] = static_cast<double>(order_.tokens(samples));
  row["tok_per_s"] = rate * static_cast<double>(train().seq_len());
}

std::string TextTask::size_text() const {
  return str(train().tokens(), " train tokens, sequences of ", train().seq_len());
}

std::vector<std::string> TextTask::data_notes() const {
  const std::string words = words_about_samples(train(), config_);
  return words.empty() ? std::vector<std::string>() : std::vector{words};
}

std::vector<std::string> TextTask::start_notes() const {
  if (config_.eval.tasks == 0 || evaluation_->gradable_answers() > 0) return {};
  return {str("note: task_acc stays empty: no answer of the eval.tasks = ", config_.eval.tasks,
              " tasks lies in the last model.block_size = ", longest_, " tokens of its sample")};
}

}  // namespace braid::apps
