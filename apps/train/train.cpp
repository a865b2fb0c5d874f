// braid train: the training loop.
#include <cstdio>

#include "apps/cli/command.h"
#include "apps/cli/signals.h"
#include "apps/cli/text.h"
#include "apps/train/log/step_trace.h"
#include "apps/train/plan/memory.h"
#include "apps/train/task/from_config.h"
#include "apps/train/train.h"
#include "apps/train/training_run.h"
#include "braid/autograd/trace.h"
#include "braid/distributed/comm/device_ranks.h"
#include "braid/distributed/job/run_on_all_ranks.h"
#include "braid/tensor/parallel.h"
#include "braid/tensor/strict.h"

namespace braid::apps {
namespace {

// Why the step must not be applied: NaN, Inf or a loss spike. None when it may.
std::optional<std::string> failure_of(TrainingRun& run, const TrainConfig& config, const models::StepMetrics& metrics,
                                      const std::vector<models::Batch>& batches) {
  if (auto reason = run.trainer().non_finite_reason(metrics, batches)) return reason;
  const SpikeDetector::Verdict verdict = run.spikes().add(metrics.loss);
  if (!verdict.spike) return std::nullopt;
  return str("loss spike at step ", run.step() + 1, ": ", std::to_string(metrics.loss), " is ",
             std::to_string(verdict.z),
             " deviations above the recent losses (guard.spike = ", shortest(config.guard.spike), ")");
}

// The loop. All ranks have the same metrics, so all take the same turns.
int train_steps(TrainingRun& run, const TrainConfig& config, const dist::ProcessMesh& mesh, const RowObserver& on_row) {
  models::Trainer& trainer = run.trainer();
  if (!run.start() || !run.finish_measurements()) {
    run.print_stopped();
    return exit_stopped;
  }
  for (int64_t count = 1; !run.finished(); ++count) {
    std::optional<StepTrace> trace;
    if (config.log.trace && count == kTracedStep) trace.emplace(config.run.out, mesh.world.rank());
    mesh.world.set_context(str("step ", run.step() + 1));
    std::vector<models::Batch> batches;
    try {
      const TracePhase phase("data");
      dist::run_on_all_ranks(mesh.world, [&] { batches = run.batches(); });  // fails on all of them or on none
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::input) run.save_before_error();
      throw;
    }
    const nn::Rates lr = run.learning_rates();

    models::StepMetrics metrics;
    std::optional<std::string> failure;
    try {
      const TracePhase phase("forward and backward");
      metrics = trainer.forward_backward(batches);
      failure = failure_of(run, config, metrics, batches);
    } catch (const Error& e) {  // BRAID_DEBUG=nan throws at the first NaN
      if (e.kind() != ErrorKind::numerical) throw;
      failure = e.what();
    }
    if (failure) {
      trainer.discard();
      run.fail_step(run.step() + 1, metrics, lr.all, *failure);
    }
    {
      const TracePhase phase("update");
      trainer.apply(lr);
    }
    trace.reset();

    LogRow row = run.count_step(metrics, lr.all, batches);
    run.measure(row);
    run.log(row);
    const bool ends = on_row && !on_row(row);
    const bool stop = mesh.world.any(ends || StopSignals::requested());
    run.save(row, stop);
    if (stop && !run.complete()) {
      if (!ends || StopSignals::requested()) run.print_stopped();  // a caller says itself what it ended
      return exit_stopped;
    }
  }
  run.print_summary();
  return 0;
}

}  // namespace

int train(const TrainConfig& config, const Schema& schema, const Job& job, const std::string& command,
          const RowObserver& on_row) {
  const StrictBits strict(config.run.strict);
  if (config.run.threads > 0) set_threads(static_cast<int>(config.run.threads));
  const Device device = parse_device(config.run.device);  // the first check: no device, no run
  check(!config.run.strict || device == kCpu, ErrorKind::setting,
        [&] { return str("run.strict = true is for the CPU alone: expected run.device = cpu, found ", device); });
#ifdef __FMA__  // BRAID_NATIVE: a compiler may fuse what is computed outside of the kernels
  check(!config.run.strict, ErrorKind::setting,
        "run.strict = true has the same bits on every processor: expected a build with BRAID_NATIVE=OFF");
#endif
  check_together(config);
  job.world().set_timeout(config.parallel.timeout);
  dist::DeviceRanks ranks = dist::device_ranks(job.world(), device);
  const dist::ProcessMesh mesh = mesh_from_config(config.parallel, ranks.world, "train");
  check_batch(config, mesh.data.size());
  const StopSignals signals;  // before data and weights are loaded, so that no signal is lost
  try {
    TrainingRun run(config, schema, mesh, ranks.device);
    const RunRecord record(ranks.world, ranks.device, command);
    for (const std::string& line : record.head()) std::printf("%s\n", line.c_str());
    run.open(record);
    return record.run(config.run.out, config.train.steps, config.train.init_from,
                      [&] { return train_steps(run, config, mesh, on_row); });
  } catch (const OutOfMemory& e) {
    const auto model = model_for_data(config);
    const bool captures = ranks.device != kCpu && config.train.graph && mesh.world.size() == 1;
    throw OutOfMemory(e.what() + std::string(captures ? "; train.graph=false keeps none for captured steps" : "") +
                      memory_advice(config, *model, sequence_length(config, *model), 0,
                                    {mesh.data.size(), mesh.context.size(), mesh.tensor.size()}, ranks.device != kCpu));
  }
}

}  // namespace braid::apps
