#include "apps/train/plan/dry_run.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "apps/cli/memory_text.h"
#include "apps/cli/plan_report.h"
#include "apps/cli/text.h"
#include "apps/train/config/data_sources.h"
#include "apps/train/config/flops.h"
#include "apps/train/config/origin.h"
#include "apps/train/config/trained.h"
#include "apps/train/log/log.h"
#include "apps/train/plan/disk.h"
#include "apps/train/plan/layout.h"
#include "apps/train/plan/memory.h"
#include "apps/train/plan/step_time.h"
#include "apps/train/run/resume.h"
#include "apps/train/task/from_config.h"
#include "apps/train/task/task.h"
#include "braid/models/cost/size.h"
#include "braid/tensor/io/path_status.h"
#include "braid/tensor/strict.h"

namespace braid::apps {

namespace fs = std::filesystem;

namespace {

// Everything that the parts of the report are made from.
struct Plan {
  const TrainConfig& config;
  const models::ModelSpec& model;
  int64_t seq_len;
  int64_t windows;     // of the training data; 0: not known
  int64_t done;        // steps of the checkpoint that the run resumes from
  SampleFlops sample;  // of the data
  bool documents;      // attention stays within those of the data
  Machine machine;
  StepPlan step;
  std::vector<StepPlan> layouts;  // of as many processes, the best first
  DiskPlan disk;
  std::vector<SourceUse> sources;                               // of a mixture, over the run
  std::vector<std::pair<std::string, std::string>> start_work;  // before the first step
  int64_t sequences;                                            // of a sample: 2 of a pair

  double samples() const {
    return static_cast<double>(config.train.batch_size) * static_cast<double>(config.train.accumulate);
  }
  double tokens() const { return samples() * static_cast<double>(sequences * seq_len); }
  // The unit of work: a token, or a sample that is no sequence.
  bool of_text() const { return model.max_sequence_length() > 0; }
  std::string unit() const { return of_text() ? "token" : "sample"; }
};

std::string layout_text(const models::MeshShape& mesh) {
  return str(mesh.data, " x ", mesh.context, " x ", mesh.tensor);
}

void add_model(Report& report, const Plan& plan) {
  const models::ModelSize size = models::model_size(plan.model);
  const auto T = static_cast<double>(plan.sequences * plan.seq_len);
  report.title("model");
  if (const std::string warning = plan.model.training_warning(); !warning.empty()) report.text("warning: " + warning);
  report.line("parameters", std::to_string(size.parameters));
  if (size.non_embedding != size.parameters) report.line("  without embeddings", std::to_string(size.non_embedding));
  if (size.dynamic > 0) report.line("  dynamic compose weights", std::to_string(size.dynamic));
  if (size.static_proj > 0) report.line("  static compose weights", std::to_string(size.static_proj));
  const SampleFlops& flops = plan.sample;
  const std::string how = plan.documents ? ", attention within the documents of the data" : "";
  report.line("FLOPs per " + plan.unit() + ", forward", flop_text(flops.forward / T) + how);
  report.line("FLOPs per " + plan.unit() + ", training", flop_text(flops.training() / T));
}

// Where the weights come from, and which are trained.
void add_start(Report& report, const Plan& plan) {
  if (const std::optional<Origin> origin = origin_of(plan.config, plan.model)) {
    report.title("start");
    for (const auto& [label, value] : origin_lines(*origin, plan.model, plan.seq_len)) report.line(label, value);
    for (const auto& [label, value] : plan.start_work) report.line(label, value);
  }
  const auto trained = trained_lines(plan.config, plan.model, plan.seq_len);
  if (!trained.empty()) report.title("trained parameters");
  for (const auto& [label, value] : trained) report.line(label, value);
}

void add_memory(Report& report, const models::TrainingMemory& memory, const std::string& copies) {
  report.line("weights", bytes_text(memory.weights) + copies);
  // Each part at the worst moment of all, and at its own.
  const auto at_most = [](double bytes, double max) {
    return bytes_text(bytes) + (max > bytes ? " (at most " + bytes_text(max) + ")" : "");
  };
  report.line("gradients", at_most(memory.gradients, memory.max_gradients));
  report.line("optimizer", bytes_text(memory.optimizer));
  report.line("activations", at_most(memory.activations, memory.max_activations));
  report.line("working space", bytes_text(memory.working));
  if (memory.copied_state > 0)
    report.line("copy for checkpoint.async",
                bytes_text(memory.copied_state) + (memory.copied_here ? "" : ", of the host, beside the total"));
}

void add_step_memory(Report& report, const Plan& plan) {
  const TrainConfig& config = plan.config;
  const Arithmetic types = arithmetic(config);
  TrainConfig other = config;
  other.train.recompute = !other.train.recompute;
  const auto memory_of = [&](const TrainConfig& c) {
    return models::trace_step(plan.model, training_setup(c, plan.seq_len, {}, plan.machine.gpu)).memory;
  };
  const models::TrainingMemory memory = memory_of(config);
  report.title(str("memory of a step ", plan.step.mesh.ranks() > 1 ? "if one process made all of it" : "on one process",
                   " (batch ", config.train.batch_size,
                   plan.of_text() ? str(" x ", plan.sequences > 1 ? "2 x " : "", plan.seq_len, " tokens") : "", ", ",
                   config.train.dtype, ")"));
  add_memory(report, memory, types.compute != types.masters ? str(", f32 and copies in ", types.compute) : "");
  report.line("total", bytes_text(memory.total()));
  report.line(other.train.recompute ? "total if blocks were recomputed" : "total if blocks were not recomputed",
              bytes_text(memory_of(other).total()));
}

// Memory and communication of one process of the mesh: the first one, whose shards are the largest.
void add_process(Report& report, const Plan& plan) {
  const models::MeshShape& mesh = plan.step.mesh;
  const models::StepVolume& v = plan.step.volume;
  report.title(str("one of ", mesh.ranks(), " processes: ", mesh.data, " data x ", mesh.context, " context x ",
                   mesh.tensor, " tensor"));
  add_memory(report, plan.step.memory, "");
  report.line("total memory", bytes_text(plan.step.memory.total()));
  report.title("bytes that it sends per step");
  auto group = [&](const char* what, const dist::CommStats& t) {
    if (t.total() == 0) return;
    report.line(what, bytes_text(double(t.total())));
    for (auto c : {dist::Collective::all_gather, dist::Collective::reduce_scatter, dist::Collective::all_to_all})
      if (t.bytes_of(c) > 0) report.line(str("  ", dist::name(c)), bytes_text(double(t.bytes_of(c))));
  };
  group("between tensor ranks", v.tensor);
  group("between context ranks", v.context);
  group("between ranks with the same weights", v.replicas);
  group("between all ranks", v.world);
  report.line("total", bytes_text(double(v.total())));
  double overlapped = double(v.replicas.bytes_of(dist::Collective::reduce_scatter) +
                             v.world.bytes_of(dist::Collective::reduce_scatter));
  report.line("of it beside the backward pass", bytes_text(overlapped));
  if (const int64_t layers = models::model_size(plan.model).layers; layers > 0)
    report.line("per layer, in line with its work",
                bytes_text(double(v.tensor.total() + v.context.total()) / double(layers)));
}

std::string fits_text(const Machine& machine, double needed) {
  if (machine.memory == 0) return "not known; --memory GiB says what there is";
  return str(needed <= machine.memory ? "yes" : "NO", ", needs ", bytes_text(needed), " of ",
             bytes_text(machine.memory));
}

void add_machine(Report& report, const Plan& plan) {
  const Machine& m = plan.machine;
  report.title("machine");
  report.line("processes", str(plan.step.mesh.ranks(), " x ", m.name));
  report.line("memory of a process", m.memory > 0 ? bytes_text(m.memory) : "not known");
  report.line("a step fits", fits_text(m, plan.step.needed()));
  report.line("matrix product, " + plan.config.train.dtype, flop_text(m.flops, "/s") + ", " + m.flops_source);
  if (plan.step.mesh.ranks() == 1) return;
  report.line("links of a process", plan.step.links_known
                                        ? str(human(m.near_link / 1e9, 3), " GB/s in a node of ", m.per_node, ", ",
                                              human(m.far_link / 1e9, 3), " GB/s between nodes (", m.link_source, ")")
                                        : "not known; --link GB/s says what they are");
}

double tokens_per_second(const Plan& plan, const StepPlan& step) { return plan.tokens() / step.seconds(); }
double mfu(const Plan& plan, double seconds) {
  return step_flops(plan.config, plan.sample) /
         (seconds * plan.machine.flops * static_cast<double>(plan.step.mesh.ranks()));
}

void add_layouts(Report& report, const Plan& plan) {
  constexpr size_t kRows = 12;
  const std::vector<StepPlan>& layouts = plan.layouts;
  report.title(str("layouts of ", plan.step.mesh.ranks(), " processes, data x context x tensor",
                   layouts.size() > kRows ? str(", the fastest ", kRows) : ""));
  char row[160];
  std::snprintf(row, sizeof row, "%-16s %12s  %-4s %12s %14s %10s/s %8s", "", "memory", "fits", "step", "communication",
                (plan.unit() + "s").c_str(), "MFU");
  report.text(row);
  const auto chosen = [&](const StepPlan& p) { return layout_text(p.mesh) == layout_text(plan.step.mesh); };
  for (size_t i = 0; i < layouts.size(); ++i) {
    const StepPlan& p = layouts[i];
    if (i >= kRows && !chosen(p)) continue;
    const char* fits = plan.machine.memory == 0 ? "?" : p.needed() <= plan.machine.memory ? "yes" : "NO";
    std::snprintf(row, sizeof row, "%-16s %12s  %-4s %12s %14s %12s %8s%s", layout_text(p.mesh).c_str(),
                  bytes_text(p.needed()).c_str(), fits, time_in_words(p.seconds()).c_str(),
                  p.links_known ? percent(p.communication() / p.seconds()).c_str() : "?",
                  human(tokens_per_second(plan, p), 3).c_str(), percent(mfu(plan, p.seconds())).c_str(),
                  chosen(p) ? "  <- parallel.*" : "");
    report.text(row);
  }
  report.text("left out: more data ranks than train.batch_size, more than 8 tensor or context ranks");
}

// Seconds of a step by the log of an earlier part of this run, or of one with the same work; 0: there is none.
double measured_seconds(const Plan& plan) {
  const fs::path out = plan.config.run.out, file = out / "config.resolved.toml";
  if (!io::exists(file) || !io::exists(out / "log.csv")) return 0;
  try {
    TrainConfig then, now = plan.config;
    const Schema before = train_schema(then, model_settings());
    load_config(before, file, {});
    const bool same_model = models::differing_settings(*model_for_data(then), plan.model).empty();
    now.model = then.model;
    for (const std::string& line : differences(before, train_schema(now, model_settings()))) {
      for (const char* key : {"data.seq_len", "train.batch_size", "train.dtype", "train.recompute", "train.attention",
                              "run.device", "run.threads", "parallel."})
        if (line.starts_with(key)) return 0;
    }
    const std::vector<LogRow> rows = read_log(out);
    if (!same_model || rows.empty()) return 0;
    const double rate = plan.of_text() ? rows.back()["tok_per_s"] : rows.back()["pictures_per_s"];
    return rate > 0 ? plan.tokens() / rate : 0;
  } catch (const Error&) {  // of an earlier version, or damaged: no measurement
    return 0;
  }
}

void add_time(Report& report, const Plan& plan, bool here) {
  const StepPlan& step = plan.step;
  const double measured = here ? measured_seconds(plan) : 0, seconds = measured > 0 ? measured : step.seconds();
  const Machine& m = plan.machine;
  report.title("time");
  report.line(plan.unit() + "s per step", number("%.0f", plan.tokens()));
  if (plan.windows > 0)
    report.line("epochs over the run",
                number("%.2f", double(plan.config.train.steps) * plan.samples() / double(plan.windows)));
  for (const SourceUse& source : plan.sources) report.line("source " + preview(source.name, 24), source.text());
  for (const std::string& warning : repetition_warnings(plan.sources)) report.text(warning);
  if (measured > 0) {
    report.line("time of a step", time_in_words(seconds) + ", measured: " + plan.config.run.out + "/log.csv");
  } else {
    report.line("computation of a step", time_in_words(step.compute) + " at " + percent(m.efficiency) +
                                             " of the matrix product's rate (" + m.efficiency_source + ")");
    if (step.mesh.ranks() > 1) {
      report.line("communication of a step",
                  step.links_known
                      ? time_in_words(step.in_line) + " in line, " + time_in_words(step.beside) +
                            " beside the backward pass, which hides up to " + time_in_words(step.compute * 2 / 3)
                      : "not counted");
      if (step.links_known) report.line("share of communication", percent(step.communication() / seconds));
    }
    report.line("time of a step", time_in_words(seconds) + (here ? " (an estimate: it may take half or twice as long; "
                                                                   "the log of a few steps is a measurement)"
                                                                 : ""));
  }
  report.line(plan.unit() + "s per second", human(plan.tokens() / seconds, 4));
  report.line("MFU", percent(mfu(plan, seconds)));
  const int64_t steps = std::max<int64_t>(0, plan.config.train.steps - plan.done);
  report.line("time of the run", str(time_in_words(seconds * double(steps)), " for ", steps, " steps",
                                     plan.done > 0 ? str(" after step ", plan.done) : ""));
}

// The run's folder can be made and written; nothing is made here.
void check_place(const std::string& out) {
  const fs::path there = existing_folder(out);
  check(io::is_folder(there, ErrorKind::output), ErrorKind::output,
        [&] { return "cannot use run.out = " + out + ": expected a folder, found the file " + there.string(); });
  check(::access(there.c_str(), W_OK) == 0, ErrorKind::output, [&] {
    return "cannot write to run.out = " + out + ": " + there.string() + ": " + io::system_message() +
           "; choose another run.out";
  });
}

// `here`: the run is planned for this machine, whose disk counts.
void add_checkpoints(Report& report, const Plan& plan, bool here) {
  const DiskPlan& disk = plan.disk;
  report.title("checkpoints");
  report.line("one", bytes_text(disk.one) + ": weights and optimizer");
  report.line("at most on the disk",
              str(bytes_text(disk.max_bytes()), ": ", disk.newest, " kept",
                  disk.milestones > 0 ? str(", ", disk.milestones, " of checkpoint.keep_every") : "",
                  disk.best ? ", the best" : "", disk.beside ? " and one being written" : ""));
  if (disk.free) {
    const std::string verdict = !here                           ? " on this machine"
                                : *disk.free < disk.max_bytes() ? ": NOT ENOUGH; " + disk_advice(disk)
                                                                : "";
    report.line("free for " + preview(plan.config.run.out, 24), bytes_text(*disk.free) + verdict);
  }
}

Device device_here(const TrainConfig& config) {
  try {
    return parse_device(config.run.device);
  } catch (const Error& e) {
    fail(e.kind(),
         str(e.what(), "; braid train --dry-run --for ", machine_names().back(), " plans for GPUs that are not here"));
  }
}

// Another layout of the processes that runs; "" where there is none.
std::string layout_advice(const Plan& plan) {
  if (plan.layouts.empty()) return "";
  const StepPlan& best = plan.layouts.front();
  if (best.needed() > plan.machine.memory && plan.machine.memory > 0) return "";
  return str("; of as many processes, parallel.data=", best.mesh.data,
             best.mesh.context > 1 ? str(" parallel.context=", best.mesh.context) : "",
             " parallel.tensor=", best.mesh.tensor, " runs best");
}

// Why braid train, or the machine, could not do the step or save the result; none when it can.
std::optional<Error> problem_of(const Plan& plan, bool here) {
  try {
    check_batch(plan.config, plan.step.mesh.data);
    check_memory(plan.config, plan.model, plan.seq_len, plan.step.mesh, plan.machine);
  } catch (const Error& e) {
    return Error(e.kind(), e.what() + layout_advice(plan));
  }
  try {
    // Processes of other machines write to a disk that may be another one.
    if (here && plan.step.mesh.ranks() == 1 && plan.done < plan.config.train.steps)
      check_disk(plan.disk, plan.config.run.out);
    return std::nullopt;
  } catch (const Error& e) {
    return e;
  }
}

}  // namespace

std::string start_comments(const TrainConfig& config) {
  const bool data = names_data(config);
  if (!data && config.model.preset.empty() && config.train.init_from.empty()) return "";
  const auto model = model_for_data(config);
  const int64_t T = sequence_length(config, *model);
  auto lines = trained_lines(config, *model, T);
  if (const std::optional<Origin> origin = origin_of(config, *model)) {
    const auto start = origin_lines(*origin, *model, T);
    lines.insert(lines.begin(), start.begin(), start.end());
  }
  std::string text;
  for (const auto& [label, value] : lines) text += "# " + label + ": " + value + "\n";
  return text.empty() ? text : "\n" + text;
}

DryRun dry_run(const TrainConfig& config, const MachineRequest& request, int64_t processes, int64_t processes_here,
               bool layout) {
  const StrictBits strict(config.run.strict);  // a step of another kind, with other memory and communication
  check_relations(config);
  check_place(config.run.out);
  const bool with_data = names_data(config), here = !request.elsewhere();
  const std::unique_ptr<const TrainingTask> task = with_data ? make_task(config) : nullptr;
  const auto model = with_data ? task->model_spec() : model_spec(config, 0);
  const int64_t T = sequence_length(config, *model);
  int64_t windows = 0, done = 0;
  models::Batch batch = models::blank_batch(*model, 1, T);
  if (with_data) {
    windows = task->samples();
    batch = task->typical_batch(*model);
    TrainConfig copy = config;
    done = check_resumable(config, train_schema(copy, model_settings()), *model, *task,
                           {.seed = config.run.seed, .seq_len = T, .data_fingerprint = task->fingerprint()});
  }
  const DType type = arithmetic(config).compute;
  const Machine machine =
      here ? this_machine(request, device_here(config), type, processes_here) : machine_elsewhere(request, type);
  models::MeshShape mesh{config.parallel.data, config.parallel.context, config.parallel.tensor};
  const int64_t required = std::max<int64_t>(1, mesh.data) * mesh.context * mesh.tensor;
  const int64_t ranks = machine.count > 0 ? machine.count : processes > 0 ? processes : required;
  dist::complete_mesh_sizes(ranks, mesh.data, mesh.context, mesh.tensor);
  const SampleFlops sample = sample_flops(config, *model, batch);
  Plan plan{config,
            *model,
            T,
            windows,
            done,
            sample,
            batch.has(models::kPositions),
            machine,
            plan_step(config, *model, T, mesh, machine, sample),
            {},
            plan_disk(config, *model),
            with_data ? task->source_use(config.train.steps * config.train.batch_size * config.train.accumulate)
                      : std::vector<SourceUse>(),
            {},
            batch.has(models::kReferenceLosses) ? 2 : 1};
  if (task) plan.start_work = task->start_work(*model);
  if (mesh.ranks() > 1) plan.layouts = plan_layouts(config, *model, T, mesh.ranks(), machine, sample);

  Report report;
  add_model(report, plan);
  add_start(report, plan);
  add_step_memory(report, plan);
  if (mesh.ranks() > 1) add_process(report, plan);
  add_machine(report, plan);
  if (mesh.ranks() > 1) add_layouts(report, plan);
  add_time(report, plan, here);
  add_checkpoints(report, plan, here);
  return {report.str() + (layout ? layout_table(*model, mesh, T) : ""), problem_of(plan, here)};
}

}  // namespace braid::apps
