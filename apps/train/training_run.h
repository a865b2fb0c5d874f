// A training run: its data, model, trainer and the files in its folder. train.cpp is the loop over its steps.
#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/progress.h"
#include "apps/train/evaluation.h"
#include "apps/train/event_file.h"
#include "apps/train/from_config.h"
#include "apps/train/log.h"
#include "apps/train/run_lock.h"
#include "apps/train/run_record.h"
#include "apps/train/spike.h"
#include "braid/models/text/sampler.h"
#include "braid/models/training/checkpoint_writer.h"

namespace braid::apps {

// Everything that a step depends on is a function of the settings and of the step's number, so a resumed run continues
// bit for bit. Of several processes rank 0 writes the files and prints; an error there is an error of all ranks.
class TrainingRun {
 public:
  // Opens the data and builds model and trainer. Finds every error in the settings; touches nothing in the run's
  // folder.
  TrainingRun(const TrainConfig& config, const Schema& schema, const dist::ProcessMesh& mesh, Device device);
  // Locks the run's folder, loads its newest valid checkpoint and opens its log. Collective.
  void open(const RunRecord& record);
  // Prints what is trained, measures the device and starts the clock.
  void start();

  models::Trainer& trainer() { return trainer_; }
  SpikeDetector& spikes() { return spikes_; }
  int64_t step() const { return state_.step; }  // steps done
  bool finished() const { return state_.step == config_.train.steps; }
  bool due(int64_t interval) const { return interval > 0 && state_.step % interval == 0; }
  bool due_or_finished(int64_t interval) const { return interval > 0 && (finished() || due(interval)); }

  // Of the next step: this data rank's micro-batches, and the learning rate.
  std::vector<models::Batch> batches() const;
  double learning_rate() const;
  // After the update: counts step, samples and time. Returns the log row of the step.
  LogRow count_step(const models::StepMetrics& metrics, double lr);
  void evaluate(LogRow& row);  // validation loss and task accuracy
  void append_sample();        // a text of the model, or why there is none, to samples.txt
  void log(LogRow& row);       // log.csv, log.jsonl and the progress line
  void save();                 // a checkpoint, unless this step's is there
  // failed-step-N.txt and a checkpoint of the step before. An error in it is printed, not thrown.
  void record_failure(const models::StepMetrics& metrics, double lr, const std::string& reason);

  void print_stopped();  // by a signal
  void print_summary();

 private:
  using Clock = std::chrono::steady_clock;
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  models::text::Dataset open_data(models::text::Split split) const;
  std::unique_ptr<const models::ModelSpec> checked_model() const;
  std::string without_numerical_failure(const std::string& name, const std::function<void()>& measure);
  std::filesystem::path out() const { return config_.run.out; }

  const TrainConfig& config_;
  const Schema& schema_;  // of config_
  const dist::ProcessMesh& mesh_;
  const Device device_;
  const Arithmetic types_;
  models::text::Dataset train_data_, validation_data_;
  models::text::Sampler sampler_;
  std::unique_ptr<const models::ModelSpec> spec_;
  std::optional<RunFolder> folder_;  // locked by rank 0
  std::unique_ptr<models::LanguageModel> model_;
  models::Trainer trainer_;
  std::optional<Evaluation> evaluation_;
  models::RunState state_;
  std::optional<RunLog> log_;        // on rank 0
  std::optional<EventFile> events_;  // on rank 0, with log.tensorboard
  models::CheckpointWriter checkpoints_;
  Progress progress_;
  SpikeDetector spikes_;
  Clock::time_point start_;
  double elapsed_before_ = 0, peak_flops_ = 0, flops_per_token_ = 0;
  LogRow last_;                              // the newest value of loss, val_loss and task_acc
  int64_t first_step_ = 0, saved_step_ = 0;  // no checkpoint before step 1
};

}  // namespace braid::apps
