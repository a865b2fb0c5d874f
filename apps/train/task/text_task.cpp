#include "apps/train/task/text_task.h"

#include <algorithm>

#include "apps/train/config/flops.h"
#include "apps/train/config/origin.h"
#include "apps/train/task/from_config.h"
#include "apps/train/task/run_data.h"
#include "braid/models/data/tasks/tasks.h"
#include "braid/models/data/text/batches.h"

namespace braid::apps {

TextTask::TextTask(const TrainConfig& config)
    : config_(config),
      sources_(config.data.sources.size() > 1 ? data_sources(config) : std::vector<DataSource>()),
      order_(training_order(config)),
      validation_(validation_data(config)) {}

// Weights may change where the run has not come to yet.
bool TextTask::continues(const TrainConfig& before, const models::RunState& saved) const {
  if (TrainingTask::continues(before, saved)) return true;
  models::text::MixedOrder::Weights weights;
  for (const DataSource& source : data_sources(before)) weights.push_back(source.weights);
  const models::RunState now = models::with_length(saved, order_.seq_len());
  return order_.begins_as(weights, saved.data_fingerprint, now.earlier, saved.samples);
}

std::vector<models::Batch> TextTask::batches(int64_t first, const dist::ProcessMesh& mesh) const {
  return models::text::step_batches(order_, first, config_.train.batch_size, config_.train.accumulate, mesh,
                                    config_.model.dropout > 0 ? std::optional(dropout_key(config_)) : std::nullopt);
}

std::unique_ptr<const models::ModelSpec> TextTask::model_spec() const {
  auto spec = apps::model_spec(config_, train().tokenizer().vocab_size());
  check_sampling(config_, *spec, train().tokenizer());
  check_same_tokenizer(config_, train().manifest());
  return spec;
}

void TextTask::check_model(const models::Model& model) const {
  const auto* text = dynamic_cast<const models::LanguageModel*>(&model);
  check(text != nullptr, ErrorKind::input,
        [&] { return "a model of type " + model.spec()->model_type() + " does not model text"; });
  check(!order_.separates_documents() || text->separates_documents(), ErrorKind::setting, [&] {
    return "a model of type " + model.spec()->model_type() +
           " cannot keep attention within documents: expected data.documents=joined, found " + config_.data.documents;
  });
}

models::Batch TextTask::typical_batch(const models::ModelSpec& model) const {
  return apps::typical_batch(model, train());
}

bool TextTask::start(const models::Model& model, const dist::ProcessMesh& mesh) {
  const auto& text = dynamic_cast<const models::LanguageModel&>(model);
  longest_ = text.max_sequence_length();
  evaluation_.emplace(config_, text, mesh, train().tokenizer(), validation_);
  return true;
}

bool TextTask::validate(LogRow& row, const Attempt& attempt) const {
  const auto losses = evaluation_->validation_losses();
  if (!losses) return false;
  std::optional<double> accuracy = not_measured;
  if (config_.eval.tasks > 0) attempt("task accuracy", [&] { accuracy = evaluation_->task_accuracy(); });
  if (!accuracy) return false;
  row["val_loss"] = mean_validation_loss(*losses);
  for (size_t i = 0; i < sources_.size(); ++i)
    row.set_source(source_column("val_loss", sources_[i].name), losses->at(i));
  row["task_acc"] = *accuracy;
  return true;
}

// By the weights of the last phase: what the run is to end with, the same at every validation.
double TextTask::mean_validation_loss(const std::vector<double>& losses) const {
  if (sources_.empty()) return losses.at(0);
  double sum = 0, weights = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    const double weight = validation_[i] ? order_.last_weights()[i] : 0;
    if (weight > 0) sum += weight * losses[i], weights += weight;
  }
  return sum / weights;
}

std::vector<SourceUse> TextTask::source_use(int64_t samples) const {
  std::vector<SourceUse> use;
  if (sources_.empty()) return use;
  const std::vector<int64_t> counts = order_.counts(samples);
  const std::vector<double> epochs = order_.epochs(samples);
  for (size_t i = 0; i < sources_.size(); ++i)
    use.push_back({sources_[i].name, counts[i],
                   static_cast<double>(counts[i]) / static_cast<double>(std::max<int64_t>(samples, 1)), epochs[i]});
  return use;
}

std::optional<double> TextTask::chance() const {
  return models::text::task_chance(models::text::parse_task_set(config_.eval.task_set));
}

void TextTask::count(LogRow& row, int64_t samples, double rate) const {
  row["tokens"] = static_cast<double>(order_.tokens(samples));
  row["tok_per_s"] = rate * static_cast<double>(train().seq_len());
}

std::string TextTask::size_text() const {
  int64_t tokens = 0;
  for (int64_t i = 0; i < order_.sources(); ++i) tokens += order_.data(i).tokens();
  return str(tokens, " train tokens", sources_.empty() ? "" : str(" in ", sources_.size(), " sources"),
             ", sequences of ", order_.seq_len());
}

std::vector<std::string> TextTask::data_notes() const {
  std::vector<std::string> notes;
  for (int64_t i = 0; i < order_.sources(); ++i)
    if (const std::string words = words_about_samples(order_.data(i), config_); !words.empty())
      notes.push_back(sources_.empty() ? words : "source " + sources_[static_cast<size_t>(i)].name + ": " + words);
  const std::vector<SourceUse> use =
      source_use(config_.train.steps * config_.train.accumulate * config_.train.batch_size);
  for (size_t i = 0; i < use.size(); ++i) {
    notes.push_back(str("source ", use[i].name, ": ", order_.data(static_cast<int64_t>(i)).tokens(),
                        " train tokens; over the run ", use[i].text()));
    if (!validation_.empty() && !validation_[i])
      notes.push_back("note: source " + use[i].name + " has no sequence in its val split: val_loss leaves it out");
  }
  for (const std::string& warning : repetition_warnings(use)) notes.push_back(warning);
  return notes;
}

std::vector<std::string> TextTask::start_notes() const {
  if (config_.eval.tasks == 0 || evaluation_->gradable_answers() > 0) return {};
  return {str("note: task_acc stays empty: no answer of the eval.tasks = ", config_.eval.tasks,
              " tasks lies in the last model.block_size = ", longest_, " tokens of its sample")};
}

}  // namespace braid::apps
