// braid train: the training loop, readable top to bottom.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <sstream>

#include "apps/cli/files.h"
#include "apps/cli/memory_text.h"
#include "apps/cli/progress.h"
#include "apps/cli/signals.h"
#include "apps/cli/text.h"
#include "apps/commands.h"
#include "apps/train/dry_run.h"
#include "apps/train/job.h"
#include "apps/train/log.h"
#include "apps/train/run_lock.h"
#include "apps/train/setup.h"
#include "apps/train/spike.h"
#include "braid/distributed/comm/device_ranks.h"
#include "braid/distributed/job/run_on_all_ranks.h"
#include "braid/models/dcformer/cost.h"
#include "braid/models/eval/icl_tasks.h"
#include "braid/models/generation/generate.h"
#include "braid/models/training/checkpoint_writer.h"
#include "braid/tensor/parallel.h"

namespace braid::apps {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// One run from its folder to its last step. Everything that a step depends on is a function of the settings and of the
// step's number, so a resumed run continues bit for bit. Of several processes rank 0 writes the files and speaks; what
// goes wrong there, all ranks hear of at once (`at_root`).
class Run {
 public:
  Run(const TrainConfig& config, const Schema& schema, const dist::ProcessMesh& mesh, Device device)
      : config_(config),
        schema_(schema),
        mesh_(mesh),
        device_(device),
        types_(arithmetic(config)),
        root_(mesh.world.rank() == 0),
        train_data_(open_data(models::text::Split::train)),
        val_data_(open_data(models::text::Split::val)),
        sampler_(train_data_.size(), static_cast<uint64_t>(config.run.seed)),
        model_config_(checked_model()),
        model_(make_model(config, model_config_, mesh, device_)),
        trainer_(*model_, optimizer_options(config), config.optimizer.clip, mesh, types_.compute),
        progress_(stdout, config.log.interval),
        checkpoints_(config.run.out, config.checkpoint.keep),
        spikes_(config.guard.spike, config.guard.warmup) {
    at_root([&] { folder_.emplace(config.run.out); });
    trainer_.record_steps(config.train.graph);
    resume();
    std::vector<double> losses;
    at_root([&] {
      log_.emplace(out(), state_.step);
      for (const LogRow& row : log_->kept()) {
        losses.push_back(row.loss);
        loss_ = row.loss;
        if (!std::isnan(row.val_loss)) val_loss_ = row.val_loss;
        if (!std::isnan(row.task_acc)) task_accuracy_ = row.task_acc;
      }
      write_text(out() / "config.resolved.toml", print_config(schema));
    });
    for (double loss : from_root(losses)) spikes_.add(loss);
  }

  // 0 when the last step was made, 75 when stopped on request with the state saved.
  int operator()() {
    const int64_t last = config_.train.steps;
    peak_flops_ = measured_flops(device_, types_.compute) * mesh_.world.size();
    reset_peak_memory(device_);
    flops_per_token_ = models::flops_per_token(model_config_, train_data_.seq_len()).training();
    validation_ = validation_batches(config_, val_data_, mesh_);
    for (int64_t i = 0; i < config_.eval.tasks; ++i)
      tasks_.push_back(models::text::make_task_sample(models::text::Words::held_out, 0, i));
    announce();
    first_step_ = state_.step;
    start_ = Clock::now();
    elapsed_before_ = state_.elapsed_s;
    while (state_.step < last) {
      one_step();
      bool stop = mesh_.world.any(StopSignals::requested()), done = state_.step == last;
      if (done || stop || due(config_.checkpoint.interval)) save();
      if (stop && !done) {
        progress_.finish();
        const char* signal = StopSignals::requested() ? StopSignals::name() : "a signal to another process";
        std::printf("stopped by %s after step %lld; state saved, run the same command again to go on\n", signal,
                    static_cast<long long>(state_.step));
        return exit_stopped;
      }
    }
    progress_.finish();
    if (root_) report();
    return 0;
  }

 private:
  models::text::Dataset open_data(models::text::Split split) {
    models::ModelConfig model = model_config(config_, models::text::read_manifest(config_.data.path).vocab_size);
    return models::text::Dataset(config_.data.path, split, sequence_length(config_, model));
  }

  // Everything that can be wrong with the settings is found before the run folder is touched.
  models::ModelConfig checked_model() {
    models::ModelConfig config = model_config(config_, train_data_.tokenizer().vocab_size());
    check_memory(config_, config, train_data_.seq_len(), mesh_, device_);
    return config;
  }

  fs::path out() const { return config_.run.out; }

  // Work of rank 0 alone. When it fails there, all ranks end with its error.
  void at_root(const std::function<void()>& work) {
    dist::run_on_all_ranks(mesh_.world, [&] {
      if (root_) work();
    });
  }

  std::vector<double> from_root(const std::vector<double>& numbers) {
    int64_t n = mesh_.world.sum(root_ ? static_cast<int64_t>(numbers.size()) : 0);
    Tensor all = root_ ? from_vector(numbers, {n}) : empty({n}, DType::f64);
    return mesh_.world.broadcast(all, 0).to_vector<double>();
  }

  // A run goes on only with the model, the data and the seed it began with. Other settings may change, and each change
  // is told. All ranks look for the newest valid checkpoint together; they must have the same program, settings and
  // data, and see the same checkpoint.
  void resume() {
    state_.seed = config_.run.seed;
    state_.seq_len = train_data_.seq_len();
    state_.data_fingerprint = train_data_.fingerprint();
    std::vector<std::string> notes;
    const fs::path newest = models::newest_checkpoint(out(), notes, mesh_.world).path;
    for (const std::string& note : notes) progress_.note("note: " + note);
    models::RunState saved;
    dist::run_on_all_ranks(mesh_.world, [&] {
      if (!newest.empty()) saved = models::read_state(newest);
    });
    std::vector<dist::RankProperty> features{{"program (checksum)", program_fingerprint()}};
    std::istringstream lines(print_config(schema_));
    for (std::string line; std::getline(lines, line);) features.push_back({"setting", line});
    features.push_back({"data fingerprint", state_.data_fingerprint});
    features.push_back({"checkpoint step", std::to_string(saved.step)});
    dist::check_ranks_agree(mesh_.world, features);
    if (newest.empty()) return;
    TrainConfig before;
    std::vector<std::string> changed = changed_settings(newest / models::kSettingsFile, schema_, before);
    check(saved.data_fingerprint == state_.data_fingerprint, ErrorKind::setting, [&] {
      return "the data in " + config_.data.path + " is not what " + newest.string() +
             " was trained on: expected data.path = " + before.data.path + " with fingerprint " +
             saved.data_fingerprint + ", found fingerprint " + state_.data_fingerprint +
             "; restore the data or choose another run.out";
    });
    const auto same = [&](const char* key, int64_t then, int64_t now) {
      check(then == now, ErrorKind::setting, [&] {
        return std::string(key) + " differs from the run in " + out().string() + ": expected " + std::to_string(then) +
               ", found " + std::to_string(now) + "; undo the change or choose another run.out";
      });
    };
    same("run.seed", saved.seed, state_.seed);
    same("data.seq_len", saved.seq_len, state_.seq_len);
    check(optimizer_moments(before) == optimizer_moments(config_), ErrorKind::setting, [&] {
      std::vector<std::string> lines_changed = changed;
      std::erase_if(lines_changed, [](const std::string& line) {
        return !line.starts_with("optimizer.name:") && !line.starts_with("optimizer.momentum:");
      });
      return "the optimizer state in " + newest.string() + " is of another kind (" + join(lines_changed, ", ") +
             "); undo the change or choose another run.out";
    });
    models::load_checkpoint(newest, trainer_);
    state_ = saved;
    saved_step_ = saved.step;
    progress_.note("resuming from " + newest.string() + (changed.empty() ? "" : " with other settings:"));
    for (const std::string& line : changed) progress_.note("  " + line);
  }

  bool due(int64_t interval) const { return interval > 0 && state_.step % interval == 0; }

  void announce() {
    models::ParameterCounts counts = models::count_parameters(model_config_);
    char text[256];
    std::snprintf(text, sizeof text,
                  "%.2fM parameters (%.2fM without embeddings), %lld train tokens, sequences of %lld, %d threads",
                  double(counts.total) / 1e6, double(counts.non_embedding) / 1e6,
                  static_cast<long long>(train_data_.tokens()), static_cast<long long>(train_data_.seq_len()),
                  threads());
    progress_.note(text);
    if (types_.compute != types_.masters || device_ != kCpu)
      progress_.note(str(types_.compute) + (types_.compute != types_.masters ? " with f32 master weights" : "") +
                     " on " + str(device_));
    if (mesh_.world.size() > 1) {
      std::snprintf(text, sizeof text, "%d processes: %d data x %d context x %d tensor", mesh_.world.size(),
                    mesh_.data.size(), mesh_.context.size(), mesh_.tensor.size());
      progress_.note(text);
    }
  }

  void one_step() {
    const int64_t step = state_.step;
    mesh_.world.where("step " + std::to_string(step + 1));
    std::vector<models::Batch> batches = step_batches(config_, train_data_, sampler_, state_.samples, mesh_);
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
      if (e.kind() != ErrorKind::numerical) throw;
      dump_failure(step, lr, trainer_.latest(), e.what());
      throw dist::CollectiveError(e.kind(), e.what());  // every rank saw the same numbers
    }
    spikes_ = after;
    const int64_t samples = config_.train.batch_size * config_.train.accumulate;
    ++state_.step;
    state_.samples += samples;
    state_.elapsed_s = elapsed_before_ + seconds_since(start_);

    LogRow row{.step = state_.step, .loss = result.loss, .lr = lr, .grad_norm = result.grad_norm};
    row.tokens = static_cast<double>(state_.samples * state_.seq_len);
    double per_second =
        static_cast<double>((state_.step - first_step_) * samples * state_.seq_len) / seconds_since(start_);
    row.tok_per_s = per_second;
    row.mfu = per_second * flops_per_token_ / peak_flops_;
    row.memory_mb = static_cast<double>(memory_stats(device_).peak) / 1e6;
    bool last = state_.step == config_.train.steps;
    if (config_.eval.interval > 0 && (last || due(config_.eval.interval))) {
      row.val_loss = val_loss_ = models::evaluate(*model_, validation_, mesh_);
      if (!tasks_.empty()) {
        with_whole_model([&](const models::Dcformer& model) {
          row.task_acc = task_accuracy_ = models::grade_tasks(model, train_data_.tokenizer(), tasks_).accuracy();
        });
      }
    }
    if (config_.sample.interval > 0 && (last || due(config_.sample.interval)))
      with_whole_model([&](const models::Dcformer& model) { write_sample(model); });
    row.elapsed_s = state_.elapsed_s;
    row.eta_s = seconds_since(start_) / double(state_.step - first_step_) * double(config_.train.steps - state_.step);
    at_root([&] { log_->append(row); });
    loss_ = result.loss;
    if (root_) progress_.update({state_.step, config_.train.steps, result.loss, val_loss_, per_second, row.eta_s});
  }

  // What takes one process and all of the model: on rank 0, with the parts of the tensor ranks put together.
  void with_whole_model(const std::function<void(const models::Dcformer&)>& work) {
    if (const auto* whole = dynamic_cast<const models::Dcformer*>(model_.get())) return at_root([&] { work(*whole); });
    models::WholeState state = trainer_.whole_state(models::Trainer::StateParts::weights);
    at_root([&] {
      models::Dcformer whole = models::Dcformer::uninitialised(model_config_);
      whole.to(types_.compute);
      whole.to(device_);
      nn::load(whole, state.weights, "the run");
      work(whole);
    });
  }

  // What a person needs to look into a failed step, beside the untouched weights of the step before it.
  void dump_failure(int64_t step, double lr, const models::StepResult& result, const std::string& why) {
    progress_.finish();
    std::string text = "step " + std::to_string(step + 1) + "\nreason " + why + "\nlr " + shortest(lr) + "\nloss " +
                       shortest(result.loss) + "\ngrad_norm " + shortest(result.grad_norm) + "\nwindows";
    int64_t per_step = config_.train.batch_size * config_.train.accumulate;
    for (int64_t i = 0; i < per_step; ++i) text += " " + std::to_string(sampler_.at(state_.samples + i));
    try {
      at_root([&] { write_text(out() / ("failed-" + models::step_name(step + 1) + ".txt"), text + "\n"); });
      if (state_.step > 0) save();
    } catch (const Error& e) {  // the failed step is the news; that it could not be recorded is a remark
      progress_.note(std::string("note: ") + e.what());
    }
  }

  void save() {
    if (saved_step_ == state_.step) return;
    at_root([&] { log_->sync(); });
    state_.memory = memory_by_use(device_);
    checkpoints_.save(trainer_, train_data_.tokenizer(), state_, print_config(schema_));
    saved_step_ = state_.step;
  }

  void write_sample(const models::Dcformer& model) {
    const models::text::Tokenizer& tokenizer = train_data_.tokenizer();
    std::vector<int32_t> prompt = tokenizer.encode(config_.sample.prompt);
    if (prompt.empty()) prompt.push_back(tokenizer.eos_id());  // a document begins after the end of another
    models::SamplingOptions options{.temperature = config_.sample.temperature,
                                    .seed = static_cast<uint64_t>(config_.run.seed)};
    models::Generated g = models::generate(model, prompt, config_.sample.tokens, options, tokenizer.eos_id());
    std::string text = "--- step " + std::to_string(state_.step) + "\n" + config_.sample.prompt +
                       tokenizer.decode(g.tokens, true) + "\n";
    std::FILE* file = std::fopen((out() / "samples.txt").c_str(), "a");
    bool ok = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    ok = file && std::fclose(file) == 0 && ok;
    check(ok, ErrorKind::output,
          [&] { return "cannot write " + (out() / "samples.txt").string() + ": " + system_message(); });
  }

  void report() {
    std::printf("trained %lld steps in %.0f s, loss %.4f", static_cast<long long>(state_.step), state_.elapsed_s,
                loss_);
    if (!std::isnan(val_loss_)) std::printf(", validation loss %.6f", val_loss_);
    if (!std::isnan(task_accuracy_)) std::printf(", task accuracy %.1f%%", 100 * task_accuracy_);
    if (state_.step > first_step_) std::printf("\npeak memory %s", peak_text(memory_by_use(device_)).c_str());
    std::printf("\nmodel %s\nlog   %s\n", (out() / models::step_name(state_.step)).c_str(),
                (out() / "log.csv").c_str());
  }

  const StopSignals listening_;  // first: a signal while data and weights are loaded is not lost
  const TrainConfig& config_;
  const Schema& schema_;  // of config_
  const dist::ProcessMesh& mesh_;
  const Device device_;
  const Arithmetic types_;
  const bool root_;
  models::text::Dataset train_data_, val_data_;
  models::text::Sampler sampler_;
  models::ModelConfig model_config_;
  std::optional<RunFolder> folder_;  // locked by rank 0
  std::unique_ptr<models::LanguageModel> model_;
  models::Trainer trainer_;
  models::RunState state_;
  std::optional<RunLog> log_;
  Progress progress_;
  models::CheckpointWriter checkpoints_;
  SpikeDetector spikes_;
  std::vector<models::Batch> validation_;
  std::vector<models::text::TaskSample> tasks_;
  Clock::time_point start_;
  double elapsed_before_ = 0, peak_flops_ = 0, flops_per_token_ = 0;
  double loss_ = not_measured, val_loss_ = not_measured, task_accuracy_ = not_measured;
  int64_t first_step_ = 0, saved_step_ = 0;  // nothing is saved before step 1
};

int train(const Arguments& arguments, const Job& job) {
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
  const Device device = parse_device(config.run.device);  // wrong ones are told first
  if (arguments.has("dry-run")) return dry_run(config);
  check_together(config);
  job.world().watch(config.parallel.timeout);
  dist::DeviceRanks ranks = dist::device_ranks(job.world(), device);
  return Run(config, schema, mesh_from_config(config, ranks.world), ranks.device)();
}

int run_train(const Arguments& arguments) {
  Job job;
  return job.run([&] { return train(arguments, job); });
}

}  // namespace

Command train_command() {
  return {
      .name = "train",
      .summary = "train a model, or go on with a run",
      .positionals = {{.name = "CONFIG", .help = "TOML file with the settings", .required = false}},
      .flags = {{.name = "print-config", .help = "print every setting with its value and meaning, then stop"},
                {.name = "dry-run", .help = "print parameters, memory, FLOPs and expected time, then stop"},
                {.name = "device", .value = "DEVICE", .help = "same as run.device=DEVICE: auto, cpu, cuda or cuda:N"},
                integer_flag("threads", "N", "same as run.threads=N; 0 = all cores", "", 0, 4096)},
      .overrides = "settings, which beat the file; --print-config lists them",
      .details =
          "The run folder run.out holds config.resolved.toml, log.csv, log.jsonl, samples.txt and checkpoints step-*.\n"
          "A run folder with a valid checkpoint is resumed from it, bit for bit. Model, data, seed, type of the\n"
          "master weights and kind of optimizer must be the same then; other settings may change, and each change is\n"
          "printed.\n"
          "On a CUDA card one process records its step and repeats it (train.graph=false runs each step); several\n"
          "processes run each.\n"
          "SIGINT, SIGTERM and SIGUSR1 save the state and end with exit code 75: run the same command again.",
      .examples = {"braid train configs/demo.toml",
                   "braid train configs/demo.toml optimizer.lr=1e-3 run.out=out/faster",
                   "braid train model.preset=dcpythia-6.9b --dry-run",
                   "mpirun -np 4 braid train configs/demo.toml parallel.tensor=2"},
      .run = run_train,
  };
}

}  // namespace braid::apps
