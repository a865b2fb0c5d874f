// The checkpoints of a training run, and its end at a step that fails.
#include <exception>

#include "apps/cli/text.h"
#include "apps/train/run/job.h"
#include "apps/train/training_run.h"
#include "braid/distributed/job/run_on_all_ranks.h"
#include "braid/tensor/io/file_system.h"

namespace braid::apps {

namespace fs = std::filesystem;

void TrainingRun::save(const LogRow& row, bool stop) {
  const TrainConfig::Checkpoint& c = config_.checkpoint;
  const bool last = stop || finished();
  bool now = last || due(c.interval) || due(c.keep_every) || best_so_far(row);
  if (!now && (c.minutes > 0 || saves_.output.failing())) {  // by the clock of rank 0
    const bool waited = c.minutes > 0 && Clock::now() - saves_.last >= std::chrono::duration<double>(60 * c.minutes);
    now = mesh_.world.any(root() && (waited || saves_.output.due()));
  }
  if (!now) return;
  at_root(mesh_.world, [&] {  // here, because no attempt later would be better
    try {
      folder_->check_held();
    } catch (const io::SystemError&) {  // may pass: the attempt meets it or not
    }
  });
  try {
    if (saves_.output.attempt([&] { write_checkpoint(row); }, last)) saves_.last = Clock::now();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::numerical) throw;
    fail_step(state_.step, {.loss = row["loss"], .grad_norm = row["grad_norm"]}, row["lr"], e.what());
  }
}

// The log first: a row that is missing at a resume is lost. But a log that cannot be written keeps no checkpoint back.
void TrainingRun::write_checkpoint(const LogRow& row) {
  std::exception_ptr unwritten;
  try {
    at_root(mesh_.world, [&] { files_.sync(); });
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::output) throw;
    unwritten = std::current_exception();
  }
  if (saves_.saved_step != state_.step) {
    state_.memory = memory_by_use(device_);
    saves_.checkpoints.save(trainer_, task_->tokenizer(), state_, resolved_config(), task_->model_files());
    saves_.saved_step = state_.step;
  }
  if (best_so_far(row)) {
    saves_.checkpoints.mark_best(state_.step, mesh_.world);
    saves_.best_val_loss = row["val_loss"];
  }
  if (unwritten) std::rethrow_exception(unwritten);
}

void TrainingRun::save_before_error() {
  if (saves_.saved_step == state_.step) return;
  progress_.finish();
  try {
    write_checkpoint(LogRow(state_.step));
    progress_.note(str("note: the state after step ", state_.step, " is saved, the run resumes from it"));
  } catch (const Error& e) {  // what ends the run is the error to report
    progress_.note(str("note: no checkpoint of step ", state_.step, ": ", e.what()));
  }
}

void TrainingRun::fail_step(int64_t step, const models::StepMetrics& metrics, double lr, const std::string& reason) {
  progress_.finish();
  const int64_t samples = config_.train.batch_size * config_.train.accumulate;
  const int64_t first = state_.samples - (state_.step + 1 - step) * samples;
  FailedStep failed{.step = step,
                    .resumed_from = saves_.first_step,
                    .reason = reason,
                    .lr = lr,
                    .loss = metrics.loss,
                    .grad_norm = metrics.grad_norm};
  for (int64_t i = 0; i < samples; ++i) failed.windows.push_back(task_->sample_at(first + i));
  std::string where;
  try {
    at_root(mesh_.world, [&] {
      const std::string settings = resolved_config();
      failed.conditions = run_conditions(settings);
      const FailedStep before = read_failed_step(out(), step);
      if (before.resumed_from == failed.resumed_from && before.conditions == failed.conditions)
        failed.times = before.times + 1;
    });
    state_.memory = memory_by_use(device_);
    const fs::path folder = saves_.checkpoints.save_failed(trainer_, task_->tokenizer(), state_, resolved_config(),
                                                           step, task_->model_files());
    at_root(mesh_.world, [&] { write_failed_step(folder, failed, task_->batches(first, {})); });
    where = "; " + folder.string() + " has its weights, batch and reason";
  } catch (const Error& e) {  // the failed step is the error to report
    progress_.note(str("note: ", e.what()));
  }
  throw dist::CollectiveError(ErrorKind::numerical, reason + where + advice(failed));
}

// How to resume, and from where.
std::string TrainingRun::advice(const FailedStep& failed) const {
  const std::vector<models::StepFolder> all = models::step_folders(out(), mesh_.world);
  std::string text = all.empty() ? "; there is no checkpoint, so the run begins anew"
                                 : "; the run resumes from " + all.back().path.filename().string();
  text += ": before you start it again, lower optimizer.lr (now " + shortest(config_.optimizer.lr) + ")";
  if (config_.optimizer.clip == 0) text += ", set optimizer.clip (now 0: none)";
  if (failed.reason.starts_with("loss spike")) text += ", or set guard.spike=0 if a jump of the loss may pass";
  if (!all.empty() && all.back().step + 1 == failed.step)
    text += "; " + all.back().path.filename().string() +
            " has the weights of the failed step: if it fails again, move it away";
  if (failed.times > 1)
    text += str("; it is failure ", failed.times,
                " of this step with these settings, and the next start with them will be rejected");
  return text;
}

}  // namespace braid::apps
