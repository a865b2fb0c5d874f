#include "apps/train/dry_run.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/cli/memory_text.h"
#include "apps/cli/text.h"
#include "apps/train/from_config.h"
#include "apps/train/matmul_rate.h"
#include "braid/models/text/dataset.h"
#include "braid/nn/optim/registry.h"
#include "braid/tensor/detail/integers.h"
#include "braid/tensor/parallel.h"

namespace braid::apps {

namespace {
std::string number(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// Titles with lines of a label and a value below them.
class Report {
 public:
  void title(const std::string& text) { text_ += text + "\n"; }
  void line(const std::string& label, const std::string& value) {
    text_ += "  " + label + std::string(label.size() < 34 ? 34 - label.size() : 0, ' ') + " " + value + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// The step that the settings describe, on one process.
models::TrainingSetup training_setup(const TrainConfig& config, int64_t seq_len) {
  return {.batch = config.train.batch_size,
          .seq_len = seq_len,
          .bytes_per_element = size_of(arithmetic(config).compute),
          .optimizer_moments = static_cast<int64_t>(nn::state_suffixes(optimizer_options(config)).size()),
          .recompute = config.train.recompute,
          .attention_workspace = attention_workspace(config, parse_device(config.run.device))};
}

// Memory and communication of one process of the mesh: the first one, whose shards are the largest.
void add_mesh(Report& report, const TrainConfig& config, const models::ModelSpec& model, int64_t T) {
  models::TrainingSetup setup = training_setup(config, T);
  setup.mesh = {std::max<int64_t>(1, config.parallel.data), config.parallel.context, config.parallel.tensor};
  const models::MeshShape& mesh = setup.mesh;
  if (mesh.ranks() == 1) return;
  setup.batch = detail::ceil_div(config.train.batch_size, mesh.data);
  models::StepShape step{.seq_len = T, .bytes_per_element = setup.bytes_per_element, .recompute = setup.recompute};
  step.samples.assign(static_cast<size_t>(config.train.accumulate), setup.batch);
  const models::StepVolume v = model.step_volume(mesh, {}, step);
  const models::TrainingMemory memory = model.training_memory(setup);
  report.title("one of " + std::to_string(mesh.ranks()) + " processes: " + std::to_string(mesh.data) + " data x " +
               std::to_string(mesh.context) + " context x " + std::to_string(mesh.tensor) + " tensor");
  report.line("weights", bytes_text(memory.weights));
  report.line("gradients", bytes_text(memory.gradients));
  report.line("optimizer", bytes_text(memory.optimizer));
  report.line("activations (estimate)", bytes_text(memory.activations));
  report.line("working space (estimate)", bytes_text(memory.working));
  report.line("total memory", bytes_text(memory.total()));
  report.title("bytes that it sends per step");
  auto group = [&](const char* what, const dist::CommStats& t) {
    if (t.total() == 0) return;
    report.line(what, bytes_text(double(t.total())));
    for (auto c : {dist::Collective::all_gather, dist::Collective::reduce_scatter, dist::Collective::all_to_all}) {
      if (t.bytes_of(c) > 0) report.line(std::string("  ") + dist::name(c), bytes_text(double(t.bytes_of(c))));
    }
  };
  group("between tensor ranks", v.tensor);
  group("between context ranks", v.context);
  group("between ranks with the same weights", v.replicas);
  group("between all ranks", v.world);
  report.line("total", bytes_text(double(v.total())));
  double overlapped = double(v.replicas.bytes_of(dist::Collective::reduce_scatter) +
                             v.world.bytes_of(dist::Collective::reduce_scatter));
  report.line("of it beside the backward pass", bytes_text(overlapped));
  if (const int64_t layers = model.size().layers; layers > 0)
    report.line("per layer, in line with its work",
                bytes_text(double(v.tensor.total() + v.context.total()) / double(layers)));
}
}  // namespace

void check_memory(const TrainConfig& config, const models::ModelSpec& model, int64_t seq_len,
                  const dist::ProcessMesh& mesh, Device device) {
  // For several processes --dry-run finds such a mistake, for a GPU its allocator.
  if (mesh.world.size() > 1 || device != kCpu) return;
  double ids = 8.0 * double(config.train.batch_size) * double(config.train.accumulate) * double(seq_len);
  double needed = (model.training_memory(training_setup(config, seq_len)).total() + ids) / 1e9;
  double there = double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE)) / 1e9;
  check(needed < 2 * there, ErrorKind::setting, [&] {
    return "a training step does not fit into memory: expected at most " + shortest(std::round(there)) +
           " GB, found about " + shortest(std::round(needed)) +
           " GB; lower train.batch_size, train.accumulate, data.seq_len or the model (--dry-run shows the parts)";
  });
}

std::string dry_run(const TrainConfig& config) {
  const bool with_data = !config.data.path.empty();
  const auto spec = model_spec(config, with_data ? models::text::read_manifest(config.data.path).vocab_size : 0);
  const models::ModelSpec& model = *spec;
  const int64_t T = sequence_length(config, model);
  int64_t windows = 0;
  if (with_data) windows = models::text::Dataset(config.data.path, models::text::Split::train, T).size();
  const models::ModelSize size = model.size();
  models::TrainingSetup setup = training_setup(config, T);
  const models::TrainingMemory memory = model.training_memory(setup);
  const double samples_per_step = double(config.train.batch_size) * double(config.train.accumulate);
  const Device device = parse_device(config.run.device);
  const Arithmetic types = arithmetic(config);
  const double peak = measured_flops(device, types.compute), step_flops = model.training_flops(T) * samples_per_step;
  // Training steps of small models reach about a third of the rate of the matrix product alone on CPUs.
  const double expected = step_flops / (0.33 * peak);
  const bool sequences = model.max_sequence_length() > 0;  // the unit of work: a token, or a sample that is no sequence
  const std::string unit = sequences ? "token" : "sample", batch = std::to_string(config.train.batch_size);

  Report report;
  report.title("model");
  report.line("parameters", std::to_string(size.parameters));
  if (size.non_embedding != size.parameters) report.line("  without embeddings", std::to_string(size.non_embedding));
  for (const models::InfoRow& part : size.parts) report.line("  " + part.label, number("%.0f", part.value));
  report.line("FLOPs per " + unit + ", forward", number("%.4g GFLOP", model.forward_flops(T) / double(T) / 1e9));
  report.line("FLOPs per " + unit + ", training", number("%.4g GFLOP", model.training_flops(T) / double(T) / 1e9));
  report.title("memory of a step (batch " + batch + (sequences ? " x " + std::to_string(T) + " tokens" : "") + ", " +
               config.train.dtype + ")");
  report.line("weights", bytes_text(memory.weights) + (types.compute != types.masters ? ", f32 and copies in " : "") +
                             (types.compute != types.masters ? str(types.compute) : ""));
  report.line("gradients", bytes_text(memory.gradients));
  report.line("optimizer", bytes_text(memory.optimizer));
  report.line("activations", bytes_text(memory.activations));
  report.line("working space", bytes_text(memory.working));
  report.line("total", bytes_text(memory.total()));
  setup.recompute = !setup.recompute;
  report.line(setup.recompute ? "total if blocks were recomputed" : "total if blocks were not recomputed",
              bytes_text(model.training_memory(setup).total()));
  add_mesh(report, config, model, T);
  report.title("time of one process");
  report.line(unit + "s per step", number("%.0f", samples_per_step * double(T)));
  if (windows > 0)
    report.line("epochs over the run", number("%.2f", double(config.train.steps) * samples_per_step / double(windows)));
  report.line("matrix product of this machine",
              number("%.1f GFLOP/s", peak / 1e9) + ", " + str(types.compute) + " on " +
                  (device == kCpu ? std::to_string(threads()) + " threads" : str(device)));
  report.line("expected time per step", number("%.3g s at a third of that rate", expected));
  report.line("expected time of the run", number("%.3g h", expected * double(config.train.steps) / 3600));
  return report.text();
}

}  // namespace braid::apps
