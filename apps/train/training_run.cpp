#include "apps/train/training_run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/cli/memory_text.h"
#include "apps/cli/plan_report.h"
#include "apps/cli/signals.h"
#include "apps/cli/text.h"
#include "apps/cli/version.h"
#include "apps/train/config/data_sources.h"
#include "apps/train/config/flops.h"
#include "apps/train/config/origin.h"
#include "apps/train/config/trained.h"
#include "apps/train/plan/disk.h"
#include "apps/train/plan/matmul_rate.h"
#include "apps/train/plan/memory.h"
#include "apps/train/run/job.h"
#include "apps/train/run/resume.h"
#include "braid/models/cost/size.h"
#include "braid/models/whole_parameters.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/kernels/attention.h"
#include "braid/tensor/parallel.h"

namespace braid::apps {

namespace fs = std::filesystem;

namespace {
// What the summary tells of the last validation beside its loss.
constexpr LogName kMeasured[] = {"task_acc", "val_top1", "val_accuracy", "val_margin"};

// The values of rank 0 on all ranks.
std::vector<double> from_root(const std::vector<double>& values, const dist::Communicator& world) {
  const bool root = world.rank() == 0;
  const int64_t n = world.sum(root ? static_cast<int64_t>(values.size()) : 0);
  const Tensor all = root ? from_vector(values, {n}) : empty({n}, DType::f64);
  return world.broadcast(all, 0).to_vector<double>();
}

// NaN: none, or not readable.
double saved_val_loss(const fs::path& checkpoint) {
  try {
    return models::read_state(checkpoint).val_loss;
  } catch (const io::SystemError&) {  // would make another checkpoint the best
    throw;
  } catch (const Error&) {
    return NAN;
  }
}

// Whether the validation that is saved with a checkpoint had as many samples of this length, and of a mixture the same
// last weights; true when not readable.
bool validated_alike(const fs::path& checkpoint, const TrainConfig& config, int64_t seq_len) {
  try {
    TrainConfig saved;
    load_config(train_schema(saved, model_settings()), checkpoint / models::kSettingsFile, {});
    return saved.eval.samples == config.eval.samples && last_weights(saved) == last_weights(config) &&
           models::read_state(checkpoint).seq_len == seq_len;
  } catch (const io::SystemError&) {  // as above
    throw;
  } catch (const Error&) {
    return true;
  }
}
}  // namespace

TrainingRun::TrainingRun(const TrainConfig& config, const Schema& schema, const dist::ProcessMesh& mesh, Device device)
    : config_(with_found_origin(config, mesh.world, start_notes_)),
      schema_(schema),
      mesh_(mesh),
      measuring_(config_.run.strict ? dist::make_mesh(mesh.world, mesh.world.size(), 1, 1) : mesh),
      device_(device),
      types_(arithmetic(config_)),
      task_(make_task(config_)),
      spec_(checked_model()),
      model_(make_model(config_, *spec_, mesh, device, start_notes_)),
      trainer_(*model_, optimizer_options(config_, *model_), config_.optimizer.clip, mesh, types_.compute),
      progress_(stdout, config_.log.interval, progress_style(config_.log.style)),
      files_(progress_),
      saves_{
          {config_.run.out, config_.checkpoint.keep, config_.checkpoint.keep_every, [this] { folder_->check_held(); }},
          OutputRetry(progress_)},
      spikes_(config_.guard.spike, config_.guard.warmup) {
  at_root(mesh_.world, [&] { files_.take_metrics_port(config_.log.metrics_port); });
  task_->check_model(*model_);
  if (rounds_stochastically(config_)) trainer_.round_stochastically(rounding_key(config_));
  trainer_.minimise(objective(config_));
  trainer_.capture_steps(config_.train.graph);
  trainer_.average_weights(config_.train.ema);
  trainer_.separate_sources(std::ssize(task_->source_use(0)));
  if (const std::optional<Origin> origin = origin_of(config_, *spec_))
    origin_lines_ = origin_lines(*origin, *spec_, task_->sample_tokens());
  state_.seed = config_.run.seed;
  state_.seq_len = task_->sample_tokens();
  state_.data_fingerprint = task_->fingerprint();
}

std::unique_ptr<const models::ModelSpec> TrainingRun::checked_model() const {
  auto spec = task_->model_spec();
  check_memory(config_, *spec, task_->sample_tokens(), {mesh_.data.size(), mesh_.context.size(), mesh_.tensor.size()},
               share_of_this_machine(device_, processes_here(mesh_.world)));
  return spec;
}

void TrainingRun::open(const RunRecord& record) {
  at_root(mesh_.world, [&] { folder_.emplace(config_.run.out); });
  state_ = resume(config_, schema_, *task_, state_, trainer_, progress_);
  if (!state_.earlier.empty()) task_->continue_after(state_.earlier);
  saves_.saved_step = saves_.first_step = state_.step;
  at_root(mesh_.world, [&] {
    check_not_stuck(out(), state_.step, run_conditions(resolved_config()));
    open_log();
  });
  saves_.checkpoints.prune(mesh_.world);  // what a killed process left, now that the best one is known
  at_root(mesh_.world, [&] {
    if (!complete()) check_disk();
    const fs::path latest = out() / models::kLatestFile;  // names another one after a kill between a checkpoint and it
    if (state_.step > 0 && models::named_step(latest) != state_.step)
      io::write_file(latest.string(), models::step_name(state_.step) + "\n");
    files_.start(record.start_event(state_.step), config_.log.tensorboard, state_.step - (measured_.unfinished ? 1 : 0),
                 complete() ? "" : config_.log.command);
    if (!complete()) files_.start_metrics(config_.log.metrics_file, config_.train.steps);
    const fs::path settings = out() / "config.resolved.toml";  // of a finished run they stay those that it had
    if (!complete() || !io::exists(settings)) io::write_file(settings.string(), record.comments() + resolved_config());
  });
  std::vector<double> losses{saves_.best_val_loss, patience_.lowest, double(patience_.step), double(patience_.since)};
  const size_t first = losses.size();
  for (const LogRow& row : files_.earlier_rows()) losses.push_back(row["loss"]);
  losses = from_root(losses, mesh_.world);
  saves_.best_val_loss = losses[0];
  patience_ = {losses[1], static_cast<int64_t>(losses[2]), static_cast<int64_t>(losses[3])};
  for (size_t i = first; i < losses.size(); ++i) spikes_.add(losses[i]);
}

// What cannot be saved is not begun. That all of it may not fit is only said: checkpoints can be moved away meanwhile.
void TrainingRun::check_disk() {
  const DiskPlan disk = plan_disk(config_, *spec_);
  apps::check_disk(disk, config_.run.out);
  const double there = disk.one * static_cast<double>(models::step_folders(out()).size());
  if (disk.free && *disk.free + there < disk.max_bytes())
    progress_.note("warning: the checkpoints of this run may take " + bytes_text(disk.max_bytes()) + ", " +
                   bytes_text(*disk.free) + " are free for " + config_.run.out + "; " + disk_advice(disk));
}

void TrainingRun::open_log() {
  files_.open(out(), state_.step, task_->log_kind(), source_columns(*task_), config_.run.strict);
  if (state_.step > 0 && !validated_alike(out() / models::step_name(state_.step), config_, state_.seq_len))
    state_.comparable_after = state_.step;
  const std::vector<LogRow> rows = files_.earlier_rows();
  for (const LogRow& row : rows) {
    measured_.last["loss"] = row["loss"];
    if (row.has("val_loss")) measured_.last["val_loss"] = row["val_loss"], measured_.val_step = row.step;
    for (const LogName measured : kMeasured)
      if (row.has(measured)) measured_.last[measured] = row[measured];
  }
  if (config_.checkpoint.best) find_best(rows);
  const bool row_lacks_values = !rows.empty() && rows.back().step == state_.step && std::isnan(rows.back()["val_loss"]);
  if (!state_.measured && due_or_finished(config_.eval.interval) && row_lacks_values)
    measured_.unfinished = rows.back();
  for (const LogRow& row : rows)  // last: it tells whether the run is finished
    if (row.step > state_.comparable_after) patience_.add(row.step, row["val_loss"]);
  // An older Braid wrote the weights that a step failed with as a checkpoint.
  const std::string failed = "failed-" + models::step_name(state_.step + 1) + ".txt";
  if (io::exists(out() / failed))
    progress_.note("note: " + models::step_name(state_.step) + " was written because the step after it failed (" +
                   failed + "); if it fails again, the run goes back to the checkpoint before it");
}

// The best of the checkpoints that are there, by the validation that is saved with each, or by the log. The file `best`
// names another one where a run was killed between the checkpoint and it.
void TrainingRun::find_best(const std::vector<LogRow>& rows) {
  const std::optional<int64_t> named = models::named_step(out() / models::kBestFile);
  std::vector<std::pair<double, models::StepFolder>> measured;
  bool others = false;
  for (const models::StepFolder& checkpoint : models::step_folders(out())) {
    if (checkpoint.step > state_.step) continue;  // damaged
    if (!validated_alike(checkpoint.path, config_, state_.seq_len)) {
      others = true;
      continue;
    }
    double loss = NAN;
    for (const LogRow& row : rows)
      if (row.step == checkpoint.step) loss = row["val_loss"];
    if (std::isnan(loss)) loss = saved_val_loss(checkpoint.path);
    if (!std::isnan(loss)) measured.emplace_back(loss, checkpoint);
  }
  if (others)
    progress_.note(str("note: checkpoints that were validated with another eval.samples than ", config_.eval.samples,
                       ", in another context or with other last weights of data.sources, cannot be compared with those "
                       "to come; the best checkpoint is chosen among the others"));
  std::ranges::stable_sort(measured, {}, [](const auto& pair) { return pair.first; });  // of equal ones the first
  for (const auto& [loss, checkpoint] : measured) {
    if (checkpoint.step != named && models::find_damage(checkpoint.path)) continue;
    saves_.best_val_loss = loss;
    if (checkpoint.step != named)
      io::write_file((out() / models::kBestFile).string(), models::step_name(checkpoint.step) + "\n");
    return;
  }
}

// How long products in 16 bits take beside f32, which depends on the processor; empty on a GPU and for wider types.
std::string TrainingRun::gain_of_type() const {
  if (device_ != kCpu || size_of(types_.compute) != 2) return "";
  const double gain = measured_flops(device_, types_.compute) / measured_flops(device_, DType::f32);
  return number(": products take %.2f of the time of f32", 1 / gain) +
         (gain > 1.1 ? "" : " on this processor; what 16 bits save here is memory");
}

bool TrainingRun::start() {
  const double stated = 1e12 * config_.log.peak_tflops;
  work_.peak_flops = (stated > 0 ? stated : measured_flops(device_, types_.compute)) * mesh_.world.size();
  const std::string gain = gain_of_type();
  reset_peak_memory(device_);
  if (saves_.first_step == 0)
    for (const auto& [label, value] : task_->start_work(*spec_)) progress_.note(label + ": " + value);
  if (!task_->start(*model_, measuring_)) return false;
  for (const std::string& note : task_->start_notes()) progress_.note(note);
  if (const std::string warning = spec_->training_warning(); !warning.empty()) progress_.note("warning: " + warning);
  const models::ModelSize size = models::model_size(*spec_);
  const std::string without = size.non_embedding == size.parameters
                                  ? ""
                                  : number(" (%.2fM without embeddings)", double(size.non_embedding) / 1e6);
  progress_.note(str(number("%.2fM parameters", double(size.parameters) / 1e6), without, ", ", task_->size_text(), ", ",
                     threads(), " threads"));
  for (const std::string& note : task_->data_notes()) progress_.note(note);
  const char* weights = rounds_stochastically(config_)     ? " weights, stochastically rounded,"
                        : types_.compute != types_.masters ? " with f32 master weights"
                                                           : "";
  if (*weights != 0 || device_ != kCpu) progress_.note(str(types_.compute, weights, " on ", device_, gain));
  if (const dist::ProcessMesh& m = mesh_; m.world.size() > 1)
    progress_.note(str(m.world.size(), " processes: ", m.data.size(), " data x ", m.context.size(), " context x ",
                       m.tensor.size(), " tensor"));
  note_start();
  work_.elapsed_before = state_.elapsed_s;
  work_.start = saves_.last = Clock::now();
  return true;
}

// Where the first weights come from, and which parameters are trained.
void TrainingRun::note_start() {
  for (const std::string& note : start_notes_) progress_.note("note: " + note);
  for (const auto& lines : {origin_lines_, trained_lines(config_, *spec_, task_->sample_tokens())})
    for (const auto& [label, value] : lines) progress_.note(label + ": " + value);
}

std::vector<models::Batch> TrainingRun::batches() const { return task_->batches(state_.samples, mesh_); }

nn::Rates TrainingRun::learning_rates() const { return nn::learning_rates(schedule(config_), state_.step); }

LogRow TrainingRun::count_step(const models::StepMetrics& metrics, double lr,
                               const std::vector<models::Batch>& batches) {
  const int64_t samples = config_.train.batch_size * config_.train.accumulate;
  const auto begins = [&](const nn::ParameterGroup& group) { return group.frozen_until == state_.step; };
  if (work_.flops == 0 || std::ranges::any_of(trainer_.optimizer().options().groups, begins))
    work_.sample_flops = sample_flops(config_, *spec_, task_->typical_batch(*spec_), state_.step).training();
  work_.flops += static_cast<double>(samples) * work_.sample_flops;
  ++state_.step;
  state_.samples += samples;
  state_.elapsed_s = work_.elapsed_before + work_.seconds();
  measured_.last["loss"] = metrics.loss;
  LogRow row(state_.step, {{"loss", metrics.loss}, {"lr", lr}, {"grad_norm", metrics.grad_norm}});
  for (const std::string& column : source_columns(*task_)) row.sources.emplace_back(column, not_measured);
  for (size_t i = 0; i < metrics.source_losses.size(); ++i) row.sources[i].second = metrics.source_losses[i];
  task_->measure_step(row, batches, metrics);
  task_->count(row, state_.samples, static_cast<double>((state_.step - saves_.first_step) * samples) / work_.seconds());
  row["mfu"] = work_.flops / work_.seconds() / work_.peak_flops;
  row["memory_mb"] = static_cast<double>(memory_stats(device_).peak) / 1e6;
  row["elapsed_s"] = state_.elapsed_s;
  row.unix_time = unix_time();
  return row;
}

// Runs a measurement that training can go without. Where NaN or Inf makes it impossible, notes and returns the reason:
// whether training can continue is decided by the loss of the next step, with its diagnosis.
std::string TrainingRun::without_numerical_failure(const std::string& name, const std::function<void()>& work) {
  try {
    work();
    return "";
  } catch (const Error& e) {  // on all ranks or on none
    if (e.kind() != ErrorKind::numerical) throw;
    progress_.note(str("note: no ", name, " at step ", state_.step, ": ", e.what()));
    return e.what();
  }
}

void TrainingRun::measure(LogRow& row) {
  state_.measured = measure(row, due_or_finished(config_.eval.interval), true);
  state_.val_loss = row["val_loss"];
}

bool TrainingRun::measure(LogRow& row, bool validate, bool lacks_sample) {
  bool complete = true;
  const auto work = [&] {
    std::optional<models::WholeParameters> whole;
    if (config_.run.strict) whole.emplace(*model_, nn::parameters(*model_), mesh_.tensor), whole->attach();
    complete = measure_now(row, validate, lacks_sample);
  };
  if (validate || (lacks_sample && due_or_finished(config_.sample.interval))) trainer_.with_average(work);
  return complete;
}

bool TrainingRun::measure_now(LogRow& row, bool validate, bool lacks_sample) {
  if (validate) {
    const auto attempt = [&](const std::string& name, const std::function<void()>& work) {
      return without_numerical_failure(name, work).empty();
    };
    if (!task_->validate(row, attempt)) return false;
    measured_.last["val_loss"] = row["val_loss"];
    for (const LogName measured : kMeasured) measured_.last[measured] = row[measured];
    measured_.val_step = row.step;
    patience_.add(row.step, row["val_loss"]);  // may end the run, and its last step has a sample
  }
  if (lacks_sample && due_or_finished(config_.sample.interval)) {
    std::optional<std::string> text = "";
    const std::string failure = without_numerical_failure("sample", [&] { text = task_->sample(); });
    if (!text) return false;
    if (!failure.empty()) text = config_.sample.prompt + "\n(no sample: " + failure + ")";
    files_.append_sample(state_.step, *text);
  }
  return true;
}

bool TrainingRun::finish_measurements() {
  if (state_.measured) return true;
  const bool validate = mesh_.world.any(measured_.unfinished.has_value());
  const bool lacks_sample = mesh_.world.any(!files_.has_sample(state_.step));
  LogRow row = measured_.unfinished.value_or(LogRow(state_.step));
  state_.measured = measure(row, validate, lacks_sample);
  if (measured_.unfinished) files_.complete(row, state_.measured);
  if (best_so_far(row)) saves_.checkpoints.mark_best(state_.step, mesh_.world), saves_.best_val_loss = row["val_loss"];
  return state_.measured;
}

void TrainingRun::log(LogRow& row) {
  row["eta_s"] = work_.seconds() / double(state_.step - saves_.first_step) * double(config_.train.steps - state_.step);
  const bool first_replica = mesh_.data.rank() == 0 && mesh_.context.rank() == 0;
  const uint32_t hash = config_.run.strict && first_replica ? weight_hash(trainer_) : 0;
  if (!root()) return;
  if (std::string uses = text_of(attention_uses()); uses != attention_) {
    attention_ = std::move(uses);
    progress_.note("attention: " + attention_);
  }
  if (const std::string& reason = trainer_.capture_given_up_reason(); !reason.empty() && !capture_noted_) {
    capture_noted_ = true;
    progress_.note(str("note: from step ", row.step,
                       " on every kernel is launched, because a step could not be captured as a CUDA graph: ", reason));
    files_.append_event(capture_given_up_event(row.step, reason));
  }
  files_.append(row);
  if (config_.run.strict) files_.append_hash(row.step, hash);
  progress_.update({.step = row.step,
                    .total = config_.train.steps,
                    .loss = row["loss"],
                    .val_loss = measured_.last["val_loss"],
                    .val_step = measured_.val_step,
                    .tok_per_s = std::isnan(row["tok_per_s"]) ? 0 : row["tok_per_s"],
                    .images_per_s = std::isnan(row["pictures_per_s"]) ? 0 : row["pictures_per_s"],
                    .eta_s = row["eta_s"]});
}

void TrainingRun::print_stopped() {
  progress_.finish();
  std::printf("stopped by %s after step %lld; %srun the same command again to resume\n", StopSignals::cause(),
              static_cast<long long>(state_.step), state_.step > 0 ? "state saved, " : "");
}

void TrainingRun::print_summary() {
  progress_.finish();
  if (!root()) return;
  const bool early = state_.step < config_.train.steps;
  if (early)
    std::printf("no lower validation loss in %lld validations (eval.patience): the lowest is %.6f at step %lld\n",
                static_cast<long long>(patience_.since), patience_.lowest, static_cast<long long>(patience_.step));
  if (state_.step == saves_.first_step)
    std::printf("already finished (a larger %s continues): ", early ? "eval.patience" : "train.steps");
  const std::string seconds =
      state_.elapsed_s < 10 ? human(state_.elapsed_s, 2) : std::to_string(std::llround(state_.elapsed_s));
  std::printf("trained %lld steps in %s s, loss %.4f", static_cast<long long>(state_.step), seconds.c_str(),
              measured_.last["loss"]);
  const std::string when = measured_.val_step == state_.step ? "" : str(" (at step ", measured_.val_step, ")");
  if (measured_.last.has("val_loss")) std::printf(", validation loss %.6f%s", measured_.last["val_loss"], when.c_str());
  if (measured_.last.has("task_acc")) {
    std::printf(", task accuracy %.1f%%", 100 * measured_.last["task_acc"]);
    if (const std::optional<double> chance = task_->chance()) std::printf(" (guessing: %.1f%%)", 100 * *chance);
  }
  if (measured_.last.has("val_top1")) std::printf(", validation accuracy %.2f%%", 100 * measured_.last["val_top1"]);
  if (measured_.last.has("val_accuracy"))
    std::printf(", validation accuracy %.2f%%, margin %.4f", 100 * measured_.last["val_accuracy"],
                measured_.last["val_margin"]);
  for (const SourceUse& source : task_->source_use(state_.samples))
    std::printf("\nsource %s: %s", source.name.c_str(), source.text().c_str());
  if (state_.step > saves_.first_step) std::printf("\npeak memory %s", peak_text(memory_by_use(device_)).c_str());
  std::printf("\nmodel %s\nlog   %s\n", (out() / models::step_name(state_.step)).c_str(), (out() / "log.csv").c_str());
}

}  // namespace braid::apps
