// braid train: the training loop.
#include <cstdio>

#include "apps/cli/commands.h"
#include "apps/cli/signals.h"
#include "apps/train/dry_run.h"
#include "apps/train/job.h"
#include "apps/train/training_run.h"
#include "braid/distributed/comm/device_ranks.h"
#include "braid/distributed/job/run_on_all_ranks.h"
#include "braid/tensor/parallel.h"

namespace braid::apps {
namespace {

// Why the step must not be applied: NaN, Inf or a loss spike. None when it may.
std::optional<std::string> failure_of(TrainingRun& run, const TrainConfig& config, const models::StepMetrics& metrics,
                                      const std::vector<models::Batch>& batches) {
  if (auto reason = run.trainer().non_finite_reason(metrics, batches)) return reason;
  const SpikeDetector::Verdict verdict = run.spikes().add(metrics.loss);
  if (!verdict.spike) return std::nullopt;
  return "loss spike at step " + std::to_string(run.step() + 1) + ": " + std::to_string(metrics.loss) + " is " +
         std::to_string(verdict.z) +
         " deviations above the recent losses (guard.spike = " + std::to_string(config.guard.spike) +
         "); lower optimizer.lr, or set guard.spike=0 to go on regardless";
}

// The loop. All ranks have the same metrics, so all take the same turns.
int train(TrainingRun& run, const TrainConfig& config, const dist::ProcessMesh& mesh) {
  models::Trainer& trainer = run.trainer();
  while (!run.finished()) {
    mesh.world.set_context("step " + std::to_string(run.step() + 1));
    const std::vector<models::Batch> batches = run.batches();
    const double lr = run.learning_rate();

    models::StepMetrics metrics;
    std::optional<std::string> failure;
    try {
      metrics = trainer.forward_backward(batches);
      failure = failure_of(run, config, metrics, batches);
    } catch (const Error& e) {  // BRAID_DEBUG=nan throws at the first NaN
      if (e.kind() != ErrorKind::numerical) throw;
      failure = e.what();
    }
    if (failure) {
      trainer.discard();
      run.record_failure(metrics, lr, *failure);
      throw dist::CollectiveError(ErrorKind::numerical, *failure);
    }
    trainer.apply(lr);

    LogRow row = run.count_step(metrics, lr);
    if (run.due_or_finished(config.eval.interval)) run.evaluate(row);
    if (run.due_or_finished(config.sample.interval)) run.append_sample();
    run.log(row);
    const bool stop = mesh.world.any(StopSignals::requested());
    if (stop || run.finished() || run.due(config.checkpoint.interval)) run.save();
    if (stop && !run.finished()) {
      run.print_stopped();
      return exit_stopped;
    }
  }
  run.print_summary();
  return 0;
}

int prepare_and_train(const Arguments& arguments, const Job& job) {
  TrainConfig config;
  Schema schema = train_schema(config, model_setting_names());
  std::vector<std::string> overrides = arguments.overrides();
  if (arguments.has("device")) overrides.push_back("run.device=" + arguments.get("device"));
  if (arguments.has("threads")) overrides.push_back("run.threads=" + arguments.get("threads"));
  load_config(schema, arguments.get("CONFIG"), overrides);
  if (arguments.has("print-config")) {
    std::fputs(print_config(schema).c_str(), stdout);
    return 0;
  }
  if (config.run.threads > 0) set_threads(static_cast<int>(config.run.threads));
  const Device device = parse_device(config.run.device);  // the first check: no device, no run
  if (arguments.has("dry-run")) {
    std::fputs(dry_run(config).c_str(), stdout);
    return 0;
  }
  check_together(config);
  job.world().set_timeout(config.parallel.timeout);
  dist::DeviceRanks ranks = dist::device_ranks(job.world(), device);
  const dist::ProcessMesh mesh = mesh_from_config(config.parallel, ranks.world, "train");
  check(config.train.batch_size >= mesh.data.size(), ErrorKind::setting, [&] {
    return "train.batch_size is smaller than parallel.data: expected at least " + std::to_string(mesh.data.size()) +
           " sequences per micro-batch, found " + std::to_string(config.train.batch_size);
  });
  const StopSignals signals;  // before data and weights are loaded, so that no signal is lost
  TrainingRun run(config, schema, mesh, ranks.device);
  const RunRecord record(ranks.world, ranks.device, arguments.line());
  for (const std::string& line : record.head()) std::printf("%s\n", line.c_str());
  run.open(record);
  return record.run(config.run.out, config.train.steps, [&] {
    run.start();
    return train(run, config, mesh);
  });
}

int run_train(const Arguments& arguments) {
  Job job;
  return job.run([&] { return prepare_and_train(arguments, job); });
}

}  // namespace

Command train_command() {
  return {
      .name = "train",
      .summary = "train a model, or resume a run",
      .positionals = {{.name = "CONFIG", .help = "TOML file with the settings", .required = false}},
      .flags = {{.name = "print-config", .help = "print every setting with its value and meaning, then stop"},
                {.name = "dry-run", .help = "print parameters, memory, FLOPs and expected time, then stop"},
                {.name = "device", .value = "DEVICE", .help = "same as run.device=DEVICE: auto, cpu, cuda or cuda:N"},
                integer_flag("threads", "N", "same as run.threads=N; 0 = all cores", "", 0, 4096)},
      .overrides = "settings, which beat the file; --print-config lists them",
      .details =
          "The run folder run.out holds config.resolved.toml, log.csv, log.jsonl, samples.txt, status.json and\n"
          "checkpoints step-*; with log.tensorboard=true also tensorboard/. braid status shows it from elsewhere.\n"
          "A run folder with a valid checkpoint is resumed from it, bit for bit. Model, data, seed, type of the\n"
          "master weights and kind of optimizer must be the same then; other settings may change, and each change is\n"
          "printed.\n"
          "On a GPU one process captures its step as a CUDA graph and replays it (train.graph=false launches every\n"
          "kernel); several processes launch every kernel.\n"
          "SIGINT, SIGTERM and SIGUSR1 save the state and end with exit code 75: run the same command again.",
      .examples = {"braid train configs/demo.toml",
                   "braid train configs/demo.toml optimizer.lr=1e-3 run.out=out/faster",
                   "braid train model.preset=dcpythia-6.9b --dry-run",
                   "mpirun -np 4 braid train configs/demo.toml parallel.tensor=2"},
      .run = run_train,
  };
}

}  // namespace braid::apps
