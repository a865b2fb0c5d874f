// The part of a run that depends on the kind of its data: batches, the model that fits them, how it is judged, and
// which words and columns that gives. text_task.h, image_task.h, pair_task.h and preference_task.h implement it.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/train/config/train_config.h"
#include "apps/train/log/log.h"
#include "braid/distributed/comm/process_mesh.h"
#include "braid/models/data/tokenizers/tokenizer.h"
#include "braid/models/model_spec.h"
#include "braid/models/sequence_lengths.h"
#include "braid/models/training/checkpoint/checkpoint.h"
#include "braid/models/training/trainer.h"

namespace braid::apps {

// What a run reads of a source of a mixture.
struct SourceUse {
  std::string name;  // as in the columns of the log
  int64_t sequences;
  double share, epochs;      // of all sequences, 0..1; how often the source is read as a whole
  std::string text() const;  // "700 sequences, 70.00 %, 1.40 epochs"
};

class TrainingTask {
 public:
  // Runs `work`, which a run can go without; false where NaN or Inf made it impossible, which is then noted under
  // `name`.
  using Attempt = std::function<bool(const std::string& name, const std::function<void()>& work)>;

  virtual ~TrainingTask() = default;

  // --- the data ---
  virtual int64_t samples() const = 0;        // of the training split
  virtual int64_t sample_tokens() const = 0;  // T; 1 where samples are no sequences
  virtual std::string fingerprint() const = 0;
  // Whether a run with these settings, now in this state, has read the samples that this task has for it.
  virtual bool continues(const TrainConfig& before, const models::RunState& saved) const {
    static_cast<void>(before);
    return saved.data_fingerprint == fingerprint();
  }
  // The micro-batches of the step that begins at place `first` of the order of samples: those of this data rank. A
  // function of settings and place alone.
  virtual std::vector<models::Batch> batches(int64_t first, const dist::ProcessMesh& mesh) const = 0;
  // Before the first batch of a run that had other sequence lengths.
  virtual void continue_after(const std::vector<models::EarlierLength>&) {}
  // Samples of the run when so many epochs are complete.
  virtual double samples_of_epochs(double epochs) const { return epochs * static_cast<double>(samples()); }
  virtual int64_t sample_at(int64_t place) const = 0;                           // the sample at a place of that order
  virtual const models::text::Tokenizer* tokenizer() const { return nullptr; }  // of checkpoints; null: none
  // What the first `samples` samples of the run take from each source; none where the data are one folder.
  virtual std::vector<SourceUse> source_use(int64_t samples) const {
    static_cast<void>(samples);
    return {};
  }
  // Names and texts of further files of checkpoints.
  virtual std::vector<std::pair<std::string, std::string>> model_files() const { return {}; }

  // --- the model ---
  // As the settings and the data describe it. Error(setting) when they do not fit each other.
  virtual std::unique_ptr<const models::ModelSpec> model_spec() const = 0;
  virtual void check_model(const models::Model& model) const = 0;  // it can be trained on these data
  // Samples of the data for what they cost (config/flops.h).
  virtual models::Batch typical_batch(const models::ModelSpec& model) const;

  // --- measurements ---
  // What start() computes, as lines of a label and a value.
  virtual std::vector<std::pair<std::string, std::string>> start_work(const models::ModelSpec&) const { return {}; }
  // Before the first batch and measurement, with the weights that the run continues from. `model` and `mesh` must
  // outlive the task. Collective; false: a stop signal came before the end.
  virtual bool start(const models::Model& model, const dist::ProcessMesh& mesh) = 0;
  // Fills the row with what is measured on the validation split. Collective; false: a stop signal came before the end.
  virtual bool validate(LogRow& row, const Attempt& attempt) const = 0;
  // A text for samples.txt, on rank 0; none: a stop signal came. Collective. Error(numerical).
  virtual std::optional<std::string> sample() const { return ""; }
  // Share of the answers in task_acc that a guess gets right; none where nothing can be guessed.
  virtual std::optional<double> chance() const { return std::nullopt; }

  // --- words and columns ---
  virtual std::string_view log_kind() const = 0;  // the columns of its log
  // After `samples` samples, at a rate per second.
  virtual void count(LogRow& row, int64_t samples, double rate) const = 0;
  // What a step shows beside its loss. Collective.
  virtual void measure_step(LogRow&, const std::vector<models::Batch>&, const models::StepMetrics&) const {}
  virtual std::string size_text() const = 0;                           // "12000 train tokens, sequences of 32"
  virtual std::vector<std::string> data_notes() const { return {}; }   // more about the data
  virtual std::vector<std::string> start_notes() const { return {}; }  // after start()
};

// A warning for each source that is read more than 4 times: beyond that, repeated tokens teach ever less
// (arXiv 2305.16264).
std::vector<std::string> repetition_warnings(const std::vector<SourceUse>& use);
// The columns that a mixture adds to the log (source_column()); none where the data are one folder.
std::vector<std::string> source_columns(const TrainingTask& task);

// The task for the data in data.path or data.sources. Error(input) when they are damaged, Error(setting) when they do
// not fit the settings.
std::unique_ptr<TrainingTask> make_task(const TrainConfig& config);
// make_task(config)->model_spec() by the description of the data alone; without data by the settings alone.
std::unique_ptr<const models::ModelSpec> model_for_data(const TrainConfig& config);

}  // namespace braid::apps
