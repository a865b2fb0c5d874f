// A training run: its task, model, trainer and the files in its folder. train.cpp is the loop over its steps.
#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/progress.h"
#include "apps/train/log/run_files.h"
#include "apps/train/log/spike.h"
#include "apps/train/run/failed_step.h"
#include "apps/train/run/output_retry.h"
#include "apps/train/run/patience.h"
#include "apps/train/run/run_lock.h"
#include "apps/train/run/run_record.h"
#include "apps/train/task/from_config.h"
#include "apps/train/task/task.h"
#include "braid/distributed/job/background_work.h"
#include "braid/models/training/checkpoint/checkpoint_writer.h"

namespace braid::apps {

// Everything that a step depends on is a function of the settings and of the step's number, so a resumed run continues
// bit for bit. Of several processes rank 0 writes the files and prints; an error there is an error of all ranks.
class TrainingRun {
 public:
  // Opens the data and builds model and trainer. Finds every error in the settings; touches nothing in the run's
  // folder.
  TrainingRun(const TrainConfig& config, const Schema& schema, const dist::ProcessMesh& mesh, Device device);
  // Locks the run's folder, loads its newest valid checkpoint and opens its log. Collective. Error(numerical) when the
  // run has failed twice from there.
  void open(const RunRecord& record);
  // Prints what is trained, measures the device and starts the clock. false: a stop signal came before the end.
  bool start();

  models::Trainer& trainer() { return trainer_; }
  SpikeDetector& spikes() { return spikes_; }
  int64_t step() const { return state_.step; }  // steps done
  bool finished() const { return state_.step >= config_.train.steps || patience_.ended(config_.eval.patience); }
  bool complete() const { return finished() && state_.measured; }  // nothing is left to do

  // The next step's micro-batches of this data rank, and its learning rate.
  std::vector<models::Batch> batches() const;
  nn::Rates learning_rates() const;
  // After the update: counts step, samples and time. Returns the log row of the step.
  LogRow count_step(const models::StepMetrics& metrics, double lr, const std::vector<models::Batch>& batches);
  // The validation, tasks and sample that are due at this step. A stop signal ends them; finish_measurements()
  // completes them after a resume, so that the log equals that of a run without a stop.
  void measure(LogRow& row);
  bool finish_measurements();               // false: a stop signal came again
  void log(LogRow& row);                    // log.csv, log.jsonl and the progress line
  void save(const LogRow& row, bool stop);  // a checkpoint where one is due, or another attempt at one that failed
  void save_before_error();                 // which ends the run between two steps, such as data that cannot be read
  // Ends the run because this step must not be applied, or has made weights that must not be saved: failed_step.h.
  // Errors while that is written are printed. Throws Error(numerical), which says from where the run resumes.
  [[noreturn]] void fail_step(int64_t step, const models::StepMetrics& metrics, double lr, const std::string& reason);

  void print_stopped();  // by a signal
  void print_summary();

 private:
  using Clock = std::chrono::steady_clock;
  bool due(int64_t interval) const { return interval > 0 && state_.step % interval == 0; }
  bool due_or_finished(int64_t interval) const { return interval > 0 && (finished() || due(interval)); }
  bool root() const { return mesh_.world.rank() == 0; }
  bool measure(LogRow& row, bool validate, bool lacks_sample);  // lacks_sample: there is none of this step
  bool measure_now(LogRow& row, bool validate, bool lacks_sample);
  bool best_so_far(const LogRow& row) const {
    return config_.checkpoint.best && row["val_loss"] < saves_.best_val_loss;
  }
  struct Checkpoint;
  Checkpoint prepare_checkpoint(const LogRow& row);
  void write_checkpoint(Checkpoint& checkpoint, const dist::Communicator& world);
  void write_checkpoint_now(const LogRow& row);
  void begin_checkpoint(const LogRow& row);
  void look_after_checkpoint(bool wait);
  std::string advice(const FailedStep& failed) const;
  void check_disk();
  void open_log();
  void find_best(const std::vector<LogRow>& rows);
  std::string gain_of_type() const;
  void note_start();
  std::unique_ptr<const models::ModelSpec> checked_model() const;
  std::string without_numerical_failure(const std::string& name, const std::function<void()>& work);
  std::string resolved_config() const { return print_config(schema_, spec_->settings()); }
  std::filesystem::path out() const { return config_.run.out; }

  // Time and arithmetic of this process.
  struct Work {
    Clock::time_point start;
    double elapsed_before = 0, peak_flops = 0;
    double sample_flops = 0, flops = 0;  // of a sample of the data; of all steps
    double seconds() const { return std::chrono::duration<double>(Clock::now() - start).count(); }
  };
  struct Measured {
    LogRow last;                       // the newest values of the loss and of validation
    int64_t val_step = -1;             // of the validation in it
    std::optional<LogRow> unfinished;  // on rank 0: the row of the step that finish_measurements() completes
  };
  // What a checkpoint is written from, by this thread or by one beside it.
  struct Checkpoint {
    int64_t step;
    std::function<void()> sync_log = {};            // of rank 0
    std::optional<models::Snapshot> snapshot = {};  // none: it was saved before
    std::string settings = {};
    models::CheckpointWriter::Files files = {};
    bool best = false, marked = false;  // as the best one so far; the file says so
    double best_before = 0;             // Saves::best_val_loss
  };
  struct Saves {
    models::CheckpointWriter checkpoints;
    OutputRetry output;
    Clock::time_point last = {};
    double best_val_loss = std::numeric_limits<double>::infinity();  // of the checkpoint that `best` names
    int64_t first_step = 0, saved_step = 0;                          // no checkpoint before step 1
    std::vector<Tensor> copies = {};                                 // of the state, for checkpoint.async
    std::unique_ptr<Checkpoint> pending = {};                        // is being written from them
    dist::BackgroundWork work = {};                                  // by this; it ends before the members above
  };

  std::vector<std::string> start_notes_;
  const TrainConfig config_;  // by with_found_origin()
  const Schema& schema_;      // of the settings as they were given
  const dist::ProcessMesh& mesh_;
  const dist::ProcessMesh measuring_;  // for measurements; of a strict run every rank is a data rank of it
  const Device device_;
  const Arithmetic types_;
  const std::unique_ptr<TrainingTask> task_;
  const std::unique_ptr<const models::ModelSpec> spec_;
  std::optional<RunFolder> folder_;                                // locked by rank 0
  std::vector<std::pair<std::string, std::string>> origin_lines_;  // of a new run with train.init_from
  std::unique_ptr<models::Model> model_;
  models::Trainer trainer_;
  models::RunState state_;
  Progress progress_;
  Work work_;
  Measured measured_;
  RunFiles files_;
  Saves saves_;
  SpikeDetector spikes_;
  Patience patience_;           // the same on all ranks
  std::string attention_;       // the kernels that were noted
  bool capture_noted_ = false;  // that a step could not be captured
};

}  // namespace braid::apps
