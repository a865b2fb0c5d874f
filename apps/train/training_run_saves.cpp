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
  look_after_checkpoint(false);
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
  look_after_checkpoint(true);
  try {
    if (c.async && !last) return begin_checkpoint(row);
    if (saves_.output.attempt([&] { write_checkpoint_now(row); }, last)) saves_.last = Clock::now();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::numerical) throw;
    fail_step(state_.step, {.loss = row["loss"], .grad_norm = row["grad_norm"]}, row["lr"], e.what());
  }
}

TrainingRun::Checkpoint TrainingRun::prepare_checkpoint(const LogRow& row) {
  Checkpoint checkpoint{.step = state_.step};
  at_root(mesh_.world, [&] {
    try {
      checkpoint.sync_log = files_.sync_later();
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::output) throw;
      checkpoint.sync_log = [error = std::current_exception()] { std::rethrow_exception(error); };
    }
  });
  if (saves_.saved_step != state_.step) {
    state_.memory = memory_by_use(device_);
    checkpoint.snapshot.emplace(trainer_, state_);
    checkpoint.snapshot->check_finite(mesh_.world);
    checkpoint.settings = resolved_config();
    checkpoint.files = task_->model_files();
  }
  checkpoint.best = best_so_far(row);
  checkpoint.best_before = saves_.best_val_loss;
  if (checkpoint.best) saves_.best_val_loss = row["val_loss"];
  return checkpoint;
}

// The log first: a row that is missing at a resume is lost. But a log that cannot be written keeps no checkpoint back.
void TrainingRun::write_checkpoint(Checkpoint& checkpoint, const dist::Communicator& world) {
  std::exception_ptr unwritten;
  try {
    at_root(world, checkpoint.sync_log);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::output) throw;
    unwritten = std::current_exception();
  }
  if (checkpoint.snapshot) {
    saves_.checkpoints.save(*checkpoint.snapshot, world, task_->tokenizer(), checkpoint.settings, checkpoint.files);
    saves_.saved_step = checkpoint.step;
  }
  if (checkpoint.best) saves_.checkpoints.mark_best(checkpoint.step, world);
  checkpoint.marked = checkpoint.best;
  if (unwritten) std::rethrow_exception(unwritten);
}

void TrainingRun::write_checkpoint_now(const LogRow& row) {
  Checkpoint checkpoint = prepare_checkpoint(row);
  try {
    write_checkpoint(checkpoint, mesh_.world);
  } catch (...) {
    if (!checkpoint.marked) saves_.best_val_loss = checkpoint.best_before;
    throw;
  }
}

// While it is written, this thread reads of saves_ nothing that the other one writes.
void TrainingRun::begin_checkpoint(const LogRow& row) {
  saves_.pending = std::make_unique<Checkpoint>(prepare_checkpoint(row));
  Checkpoint& checkpoint = *saves_.pending;
  if (checkpoint.snapshot) {
    const MemoryScope scope(MemoryUse::other);
    checkpoint.snapshot->copy_tensors(saves_.copies);
  }
  saves_.work.start(mesh_.world, [&](const dist::Communicator& world) { write_checkpoint(checkpoint, world); });
  saves_.last = Clock::now();
}

// Lets the checkpoint that is written beside the training proceed, or waits for its end. Its error is then that of a
// checkpoint written by this thread. Collective.
void TrainingRun::look_after_checkpoint(bool wait) {
  if (!saves_.work.active()) return;
  std::exception_ptr error;
  try {
    if (!saves_.work.proceed()) {
      if (!wait) return;
      const auto begin = Clock::now();
      saves_.work.finish();
      const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      progress_.note(str("note: step ", state_.step, " waited ", human(seconds, 2), " s until the checkpoint of step ",
                         saves_.pending->step, " was written"));
      files_.append_event(checkpoint_waited_event(state_.step, saves_.pending->step, seconds));
    }
  } catch (...) {
    error = std::current_exception();
    if (saves_.work.active()) throw;  // not its own: the ranks do not meet any more
    if (!saves_.pending->marked) saves_.best_val_loss = saves_.pending->best_before;
  }
  saves_.pending.reset();
  saves_.output.attempt(
      [&] {
        if (error) std::rethrow_exception(error);
      },
      false);
}

void TrainingRun::save_before_error() {
  progress_.finish();
  try {
    look_after_checkpoint(true);
    if (saves_.saved_step == state_.step) return;
    write_checkpoint_now(LogRow(state_.step));
    progress_.note(str("note: the state after step ", state_.step, " is saved, the run resumes from it"));
  } catch (const Error& e) {  // what ends the run is the error to report
    progress_.note(str("note: no checkpoint of step ", state_.step, ": ", e.what()));
  }
}

void TrainingRun::fail_step(int64_t step, const models::StepMetrics& metrics, double lr, const std::string& reason) {
  progress_.finish();
  try {
    look_after_checkpoint(true);
  } catch (const Error& e) {  // the failed step is the error to report
    progress_.note(str("note: ", e.what()));
  }
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
