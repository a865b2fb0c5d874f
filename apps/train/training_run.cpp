#include "apps/train/training_run.h"

#include <cmath>
#include <cstdio>

#include "apps/cli/memory_text.h"
#include "apps/cli/signals.h"
#include "apps/cli/text.h"
#include "apps/cli/version.h"
#include "apps/train/dry_run.h"
#include "apps/train/job.h"
#include "apps/train/matmul_rate.h"
#include "apps/train/resume.h"
#include "braid/models/text/batches.h"
#include "braid/models/text/manifest.h"
#include "braid/tensor/io/append_file.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/parallel.h"

namespace braid::apps {

namespace {
// The values of rank 0 on all ranks.
std::vector<double> from_root(const std::vector<double>& values, const dist::Communicator& world) {
  const bool root = world.rank() == 0;
  const int64_t n = world.sum(root ? static_cast<int64_t>(values.size()) : 0);
  const Tensor all = root ? from_vector(values, {n}) : empty({n}, DType::f64);
  return world.broadcast(all, 0).to_vector<double>();
}
}  // namespace

TrainingRun::TrainingRun(const TrainConfig& config, const Schema& schema, const dist::ProcessMesh& mesh, Device device)
    : config_(config),
      schema_(schema),
      mesh_(mesh),
      device_(device),
      types_(arithmetic(config)),
      train_data_(open_data(models::text::Split::train)),
      validation_data_(open_data(models::text::Split::val)),
      sampler_(train_data_.size(), static_cast<uint64_t>(config.run.seed)),
      spec_(checked_model()),
      model_(make_model(config, *spec_, mesh, device)),
      trainer_(*model_, optimizer_options(config), config.optimizer.clip, mesh, types_.compute),
      checkpoints_(config.run.out, config.checkpoint.keep),
      progress_(stdout, config.log.interval, progress_style(config.log.style)),
      spikes_(config.guard.spike, config.guard.warmup) {
  trainer_.capture_steps(config.train.graph);
  state_.seed = config.run.seed;
  state_.seq_len = train_data_.seq_len();
  state_.data_fingerprint = train_data_.fingerprint();
}

models::text::Dataset TrainingRun::open_data(models::text::Split split) const {
  const auto spec = model_spec(config_, models::text::read_manifest(config_.data.path).vocab_size);
  return models::text::Dataset(config_.data.path, split, sequence_length(config_, *spec));
}

std::unique_ptr<const models::ModelSpec> TrainingRun::checked_model() const {
  auto spec = model_spec(config_, train_data_.tokenizer().vocab_size());
  check_memory(config_, *spec, train_data_.seq_len(), mesh_, device_);
  return spec;
}

void TrainingRun::open(const RunRecord& record) {
  at_root(mesh_.world, [&] { folder_.emplace(config_.run.out); });
  state_ = resume(config_, schema_, state_, trainer_, progress_);
  saved_step_ = state_.step;
  std::vector<double> losses;
  at_root(mesh_.world, [&] {
    log_.emplace(out(), state_.step);
    for (const LogRow& row : log_->earlier_rows()) {
      losses.push_back(last_.loss = row.loss);
      if (!std::isnan(row.val_loss)) last_.val_loss = row.val_loss;
      if (!std::isnan(row.task_acc)) last_.task_acc = row.task_acc;
    }
    log_->append_event(record.start_event(state_.step));
    if (config_.log.tensorboard) events_.emplace(out() / "tensorboard", state_.step);
    io::write_file((out() / "config.resolved.toml").string(), record.comments() + print_config(schema_));
  });
  for (double loss : from_root(losses, mesh_.world)) spikes_.add(loss);
}

void TrainingRun::start() {
  peak_flops_ = measured_flops(device_, types_.compute) * mesh_.world.size();
  reset_peak_memory(device_);
  flops_per_token_ = spec_->training_flops(train_data_.seq_len()) / double(train_data_.seq_len());
  evaluation_.emplace(config_, *model_, mesh_, validation_data_);
  if (config_.eval.tasks > 0 && evaluation_->gradable_answers() == 0)
    progress_.note("note: task_acc stays empty: no answer of the eval.tasks = " + std::to_string(config_.eval.tasks) +
                   " tasks lies in the last model.block_size = " + std::to_string(model_->max_sequence_length()) +
                   " tokens of its sample");
  const models::ModelSize size = spec_->size();
  char text[256];
  std::snprintf(text, sizeof text,
                "%.2fM parameters (%.2fM without embeddings), %lld train tokens, sequences of %lld, %d threads",
                double(size.parameters) / 1e6, double(size.non_embedding) / 1e6,
                static_cast<long long>(train_data_.tokens()), static_cast<long long>(train_data_.seq_len()), threads());
  progress_.note(text);
  if (types_.compute != types_.masters || device_ != kCpu)
    progress_.note(str(types_.compute) + (types_.compute != types_.masters ? " with f32 master weights" : "") + " on " +
                   str(device_));
  if (mesh_.world.size() > 1) {
    std::snprintf(text, sizeof text, "%d processes: %d data x %d context x %d tensor", mesh_.world.size(),
                  mesh_.data.size(), mesh_.context.size(), mesh_.tensor.size());
    progress_.note(text);
  }
  first_step_ = state_.step;
  elapsed_before_ = state_.elapsed_s;
  start_ = Clock::now();
}

std::vector<models::Batch> TrainingRun::batches() const {
  return models::text::step_batches(train_data_, sampler_, state_.samples, config_.train.batch_size,
                                    config_.train.accumulate, mesh_);
}

double TrainingRun::learning_rate() const { return nn::learning_rate(schedule(config_), state_.step); }

LogRow TrainingRun::count_step(const models::StepMetrics& metrics, double lr) {
  const int64_t samples = config_.train.batch_size * config_.train.accumulate;
  ++state_.step;
  state_.samples += samples;
  state_.elapsed_s = elapsed_before_ + seconds();
  last_.loss = metrics.loss;
  LogRow row{.step = state_.step, .loss = metrics.loss, .lr = lr, .grad_norm = metrics.grad_norm};
  row.tokens = static_cast<double>(state_.samples * state_.seq_len);
  row.tok_per_s = static_cast<double>((state_.step - first_step_) * samples * state_.seq_len) / seconds();
  row.mfu = row.tok_per_s * flops_per_token_ / peak_flops_;
  row.memory_mb = static_cast<double>(memory_stats(device_).peak) / 1e6;
  row.elapsed_s = state_.elapsed_s;
  row.unix_time = unix_time();
  return row;
}

// Runs a measurement that training can go without. Where NaN or Inf makes it impossible, notes and returns the reason:
// whether training can go on is decided by the loss of the next step, with its diagnosis.
std::string TrainingRun::without_numerical_failure(const std::string& name, const std::function<void()>& measure) {
  try {
    measure();
    return "";
  } catch (const Error& e) {  // on all ranks or on none
    if (e.kind() != ErrorKind::numerical) throw;
    progress_.note("note: no " + name + " at step " + std::to_string(state_.step) + ": " + e.what());
    return e.what();
  }
}

void TrainingRun::evaluate(LogRow& row) {
  row.val_loss = last_.val_loss = evaluation_->validation_loss();
  if (config_.eval.tasks > 0)
    without_numerical_failure("task accuracy", [&] { row.task_acc = last_.task_acc = evaluation_->task_accuracy(); });
}

void TrainingRun::append_sample() {
  std::string sample;
  const std::string failure = without_numerical_failure("sample", [&] { sample = evaluation_->sample(); });
  if (!failure.empty()) sample = config_.sample.prompt + "\n(no sample: " + failure + ")";
  at_root(mesh_.world, [&] {
    const std::string text = "--- step " + std::to_string(state_.step) + "\n" + sample + "\n";
    io::AppendFile((out() / "samples.txt").string()).append(text);
  });
}

void TrainingRun::log(LogRow& row) {
  row.eta_s = seconds() / double(state_.step - first_step_) * double(config_.train.steps - state_.step);
  at_root(mesh_.world, [&] {
    log_->append(row);
    if (events_) events_->append(row);
    progress_.update({row.step, config_.train.steps, row.loss, last_.val_loss, row.tok_per_s, row.eta_s});
  });
}

void TrainingRun::save() {
  if (saved_step_ == state_.step) return;
  at_root(mesh_.world, [&] { log_->sync(); });
  state_.memory = memory_by_use(device_);
  checkpoints_.save(trainer_, &train_data_.tokenizer(), state_, print_config(schema_));
  saved_step_ = state_.step;
}

void TrainingRun::record_failure(const models::StepMetrics& metrics, double lr, const std::string& reason) {
  progress_.finish();
  const int64_t step = state_.step + 1;
  std::string text = "step " + std::to_string(step) + "\nreason " + reason + "\nlr " + shortest(lr) + "\nloss " +
                     shortest(metrics.loss) + "\ngrad_norm " + shortest(metrics.grad_norm) + "\nwindows";
  const int64_t samples = config_.train.batch_size * config_.train.accumulate;
  for (int64_t i = 0; i < samples; ++i) text += " " + std::to_string(sampler_.at(state_.samples + i));
  try {
    at_root(mesh_.world,
            [&] { io::write_file((out() / ("failed-" + models::step_name(step) + ".txt")).string(), text + "\n"); });
    if (state_.step > 0) save();
  } catch (const Error& e) {  // the failed step is the error to report
    progress_.note(std::string("note: ") + e.what());
  }
}

void TrainingRun::print_stopped() {
  progress_.finish();
  const char* signal = StopSignals::requested() ? StopSignals::name() : "a signal to another process";
  std::printf("stopped by %s after step %lld; state saved, run the same command again to go on\n", signal,
              static_cast<long long>(state_.step));
}

void TrainingRun::print_summary() {
  progress_.finish();
  if (mesh_.world.rank() != 0) return;
  std::printf("trained %lld steps in %.0f s, loss %.4f", static_cast<long long>(state_.step), state_.elapsed_s,
              last_.loss);
  if (!std::isnan(last_.val_loss)) std::printf(", validation loss %.6f", last_.val_loss);
  if (!std::isnan(last_.task_acc)) std::printf(", task accuracy %.1f%%", 100 * last_.task_acc);
  if (state_.step > first_step_) std::printf("\npeak memory %s", peak_text(memory_by_use(device_)).c_str());
  std::printf("\nmodel %s\nlog   %s\n", (out() / models::step_name(state_.step)).c_str(), (out() / "log.csv").c_str());
}

}  // namespace braid::apps
