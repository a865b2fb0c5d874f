// braid train: the training loop, readable top to bottom.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "apps/commands.h"
#include "apps/common/files.h"
#include "apps/common/log.h"
#include "apps/common/progress.h"
#include "apps/common/run_folder.h"
#include "apps/common/spike.h"
#include "apps/common/stop.h"
#include "apps/common/text.h"
#include "apps/dry_run.h"
#include "apps/train_setup.h"
#include "models/checkpoint.h"
#include "models/counting.h"
#include "models/generate.h"
#include "models/task_eval.h"
#include "tensor/cpu/parallel.h"

namespace braid::app {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// One run from its folder to its last step. Everything that a step depends on is a function of the settings and of the
// step's number, so a resumed run continues bit for bit.
class Run {
 public:
  Run(const TrainConfig& config, const Schema& schema)
      : config_(config),
        train_data_(open_data(text::Split::train)),
        val_data_(open_data(text::Split::val)),
        sampler_(train_data_.size(), static_cast<uint64_t>(config.run.seed)),
        model_config_(checked_model()),
        folder_(config.run.out),
        model_(make_model()),
        trainer_(model_, optimizer_options(config), config.optimizer.clip),
        progress_(stdout, config.log.interval),
        spikes_(config.guard.spike, config.guard.warmup) {
    resume();
    log_.emplace(folder_.path(), state_.step);
    for (const LogRow& row : log_->kept()) {
      spikes_.add(row.loss);
      loss_ = row.loss;
      if (!std::isnan(row.val_loss)) val_loss_ = row.val_loss;
      if (!std::isnan(row.task_acc)) task_accuracy_ = row.task_acc;
    }
    write_text(folder_.path() / "config.resolved.toml", print_config(schema));
  }

  // 0 when the last step was made, 75 when stopped on request with the state saved.
  int operator()() {
    const int64_t last = config_.train.steps;
    peak_flops_ = measured_flops();
    flops_per_token_ = models::flops_per_token(model_.config(), train_data_.seq_len()).training();
    validation_ = validation_batches(config_, val_data_);
    for (int64_t i = 0; i < config_.eval.tasks; ++i)
      tasks_.push_back(text::make_task_sample(text::Words::held_out, 0, i));
    announce();
    first_step_ = state_.step;
    start_ = Clock::now();
    elapsed_before_ = state_.elapsed_s;
    while (state_.step < last) {
      one_step();
      bool stop = StopSignals::requested(), done = state_.step == last;
      if (done || stop || due(config_.checkpoint.interval)) save();
      if (stop && !done) {
        progress_.finish();
        std::printf("stopped by %s after step %lld; state saved, run the same command again to go on\n",
                    StopSignals::name(), static_cast<long long>(state_.step));
        return exit_stopped;
      }
    }
    progress_.finish();
    report();
    return 0;
  }

 private:
  text::Dataset open_data(text::Split split) {
    models::ModelConfig model = model_config(config_, text::read_manifest(config_.data.path).vocab_size);
    return text::Dataset(config_.data.path, split, sequence_length(config_, model));
  }

  // Everything that can be wrong with the settings is found before the run folder is touched.
  models::ModelConfig checked_model() {
    models::ModelConfig config = model_config(config_, train_data_.tokenizer().vocab_size());
    check_memory(config_, config, train_data_.seq_len());
    return config;
  }

  models::Dcformer make_model() {
    models::Dcformer model(model_config_, child({static_cast<uint64_t>(config_.run.seed), 0}, "parameters"));
    if (config_.train.dtype == "f64") model.to(DType::f64);
    model.checkpoint_activations(config_.train.checkpoint_activations);
    return model;
  }

  void resume() {
    state_.seed = config_.run.seed;
    state_.data_fingerprint = train_data_.fingerprint();
    std::vector<std::string> notes;
    models::StepFolder newest = models::newest_checkpoint(folder_.path(), notes);
    for (const std::string& note : notes) progress_.note("note: " + note);
    if (newest.path.empty()) return;
    models::RunState saved = models::read_state(newest.path);
    check(saved.data_fingerprint == state_.data_fingerprint, ErrorKind::setting, [&] {
      return "the data in " + config_.data.path + " is not what " + newest.path.string() +
             " was trained on: expected fingerprint " + saved.data_fingerprint + ", found " + state_.data_fingerprint +
             "; restore the data or choose another run.out";
    });
    check(saved.seed == state_.seed, ErrorKind::setting, [&] {
      return "run.seed differs from the run in " + folder_.path().string() + ": expected " +
             std::to_string(saved.seed) + ", found " + std::to_string(state_.seed) +
             "; undo the change or choose another run.out";
    });
    models::load_checkpoint(newest.path, trainer_);
    state_ = saved;
    saved_step_ = saved.step;
    progress_.note("resuming from " + newest.path.string());
  }

  bool due(int64_t interval) const { return interval > 0 && state_.step % interval == 0; }

  void announce() {
    models::ParameterCounts counts = models::count_parameters(model_.config());
    char text[256];
    std::snprintf(text, sizeof text,
                  "%.2fM parameters (%.2fM without embeddings), %lld train tokens, sequences of %lld, %d threads",
                  double(counts.total) / 1e6, double(counts.non_embedding) / 1e6,
                  static_cast<long long>(train_data_.tokens()), static_cast<long long>(train_data_.seq_len()),
                  threads());
    progress_.note(text);
  }

  void one_step() {
    const int64_t step = state_.step;
    std::vector<models::Batch> batches = step_batches(config_, train_data_, sampler_, step);
    double lr = nn::learning_rate(schedule(config_), step);
    SpikeDetector after = spikes_;
    models::StepResult result;
    try {
      result = trainer_.step(batches, lr, [&](const models::StepResult& r) {
        SpikeDetector::Verdict verdict = after.add(r.loss);
        check(!verdict.spike, ErrorKind::numerical, [&] {
          return "loss spike at step " + std::to_string(step + 1) + ": " + std::to_string(r.loss) + " is " +
                 std::to_string(verdict.z) +
                 " deviations above the recent losses (guard.spike = " + std::to_string(config_.guard.spike) +
                 "); lower optimizer.lr, or set guard.spike=0 to go on regardless";
        });
      });
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::numerical) dump_failure(step, lr, trainer_.latest(), e.what());
      throw;
    }
    spikes_ = after;
    ++state_.step;
    state_.elapsed_s = elapsed_before_ + seconds_since(start_);

    LogRow row{.step = state_.step, .loss = result.loss, .lr = lr, .grad_norm = result.grad_norm};
    int64_t per_step = config_.train.batch_size * config_.train.accumulate * train_data_.seq_len();
    row.tokens = static_cast<double>(state_.step * per_step);
    double per_second = static_cast<double>((state_.step - first_step_) * per_step) / seconds_since(start_);
    row.tok_per_s = per_second;
    row.mfu = per_second * flops_per_token_ / peak_flops_;
    row.memory_mb = static_cast<double>(memory_stats(kCpu).peak) / 1e6;
    bool last = state_.step == config_.train.steps;
    if (config_.eval.interval > 0 && (last || due(config_.eval.interval))) {
      row.val_loss = val_loss_ = models::evaluate(model_, validation_);
      if (!tasks_.empty())
        row.task_acc = task_accuracy_ = models::grade_tasks(model_, train_data_.tokenizer(), tasks_).accuracy();
    }
    if (config_.sample.interval > 0 && (last || due(config_.sample.interval))) write_sample();
    row.elapsed_s = state_.elapsed_s;
    row.eta_s = seconds_since(start_) / double(state_.step - first_step_) * double(config_.train.steps - state_.step);
    log_->append(row);
    loss_ = result.loss;
    progress_.update({state_.step, config_.train.steps, result.loss, val_loss_, per_second, row.eta_s});
  }

  // What a person needs to look into a failed step, beside the untouched weights of the step before it.
  void dump_failure(int64_t step, double lr, const models::StepResult& result, const std::string& why) {
    progress_.finish();
    std::string text = "step " + std::to_string(step + 1) + "\nreason " + why + "\nlr " + shortest(lr) + "\nloss " +
                       shortest(result.loss) + "\ngrad_norm " + shortest(result.grad_norm) + "\nwindows";
    int64_t per_step = config_.train.batch_size * config_.train.accumulate;
    for (int64_t i = 0; i < per_step; ++i) text += " " + std::to_string(sampler_.at(step * per_step + i));
    try {
      write_text(folder_.path() / ("failed-" + models::step_name(step + 1) + ".txt"), text + "\n");
      if (state_.step > 0) save();
    } catch (const Error& e) {  // the failed step is the news; that it could not be recorded is a remark
      progress_.note(std::string("note: ") + e.what());
    }
  }

  void save() {
    if (saved_step_ == state_.step) return;
    log_->sync();
    models::save_checkpoint(folder_.path(), trainer_, train_data_.tokenizer(), state_,
                            config_.checkpoint.keep);
    saved_step_ = state_.step;
  }

  void write_sample() {
    const text::Tokenizer& tokenizer = train_data_.tokenizer();
    std::vector<int32_t> prompt = tokenizer.encode(config_.sample.prompt);
    if (prompt.empty()) prompt.push_back(tokenizer.eos_id());  // a document begins after the end of another
    models::SamplingOptions options{.temperature = config_.sample.temperature,
                                    .seed = static_cast<uint64_t>(config_.run.seed)};
    models::Generated g = models::generate(model_, prompt, config_.sample.tokens, options, tokenizer.eos_id());
    std::string text = "--- step " + std::to_string(state_.step) + "\n" + config_.sample.prompt +
                       tokenizer.decode(g.tokens, true) + "\n";
    std::FILE* file = std::fopen((folder_.path() / "samples.txt").c_str(), "a");
    bool ok = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    ok = file && std::fclose(file) == 0 && ok;
    check(ok, ErrorKind::output,
          [&] { return "cannot write " + (folder_.path() / "samples.txt").string() + ": " + system_message(); });
  }

  void report() {
    std::printf("trained %lld steps in %.0f s, loss %.4f", static_cast<long long>(state_.step), state_.elapsed_s,
                loss_);
    if (!std::isnan(val_loss_)) std::printf(", validation loss %.6f", val_loss_);
    if (!std::isnan(task_accuracy_)) std::printf(", task accuracy %.1f%%", 100 * task_accuracy_);
    std::printf("\nmodel %s\nlog   %s\n", (folder_.path() / models::step_name(state_.step)).c_str(),
                (folder_.path() / "log.csv").c_str());
  }

  const StopSignals listening_;  // first: a signal while data and weights are loaded is not lost
  const TrainConfig& config_;
  text::Dataset train_data_, val_data_;
  text::Sampler sampler_;
  models::ModelConfig model_config_;
  RunFolder folder_;
  models::Dcformer model_;
  models::Trainer trainer_;
  models::RunState state_;
  std::optional<RunLog> log_;
  Progress progress_;
  SpikeDetector spikes_;
  std::vector<models::Batch> validation_;
  std::vector<text::TaskSample> tasks_;
  Clock::time_point start_;
  double elapsed_before_ = 0, peak_flops_ = 0, flops_per_token_ = 0;
  double loss_ = not_measured, val_loss_ = not_measured, task_accuracy_ = not_measured;
  int64_t first_step_ = 0, saved_step_ = 0;  // nothing is saved before step 1
};

int run_train(const Arguments& arguments) {
  TrainConfig config;
  Schema schema = train_schema(config, models::config_keys());
  std::vector<std::string> overrides = arguments.overrides();
  if (arguments.has("device")) overrides.push_back("run.device=" + arguments.get("device"));
  if (arguments.has("threads")) overrides.push_back("run.threads=" + arguments.get("threads"));
  load_config(schema, arguments.get("CONFIG"), overrides);
  if (arguments.has("print-config")) {
    std::fputs(print_config(schema).c_str(), stdout);
    return 0;
  }
  if (config.run.threads > 0) set_threads(static_cast<int>(config.run.threads));
  Device device = parse_device(config.run.device);
  check(device == kCpu, ErrorKind::setting,
        [&] { return "training runs on the CPU only; set run.device=cpu, found " + str(device); });
  if (arguments.has("dry-run")) return dry_run(config);
  check_together(config);
  return Run(config, schema)();
}

}  // namespace

Command train_command() {
  return {
      .name = "train",
      .summary = "train a model, or go on with a run",
      .positionals = {{.name = "CONFIG", .help = "TOML file with the settings", .required = false}},
      .flags = {{.name = "print-config", .help = "print every setting with its value and meaning, then stop"},
                {.name = "dry-run", .help = "print parameters, memory, FLOPs and expected time, then stop"},
                {.name = "device", .value = "DEVICE", .help = "same as run.device=DEVICE: auto, cpu or cuda:N"},
                {.name = "threads",
                 .value = "N",
                 .help = "same as run.threads=N; 0 = all cores",
                 .type = FlagType::integer,
                 .min = 0,
                 .max = 4096}},
      .overrides = "settings, which beat the file; --print-config lists them",
      .details =
          "The run folder run.out holds config.resolved.toml, log.csv, log.jsonl, samples.txt and checkpoints step-*.\n"
          "A run folder with a valid checkpoint is resumed from it, bit for bit. SIGINT, SIGTERM and SIGUSR1 save the "
          "state and end\n"
          "with exit code 75: run the same command again.",
      .examples = {"braid train configs/demo.toml",
                   "braid train configs/demo.toml optimizer.lr=1e-3 run.out=out/faster",
                   "braid train model.preset=dcpythia-6.9b --dry-run"},
      .run = run_train,
  };
}

}  // namespace braid::app
