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
#include "braid/models/training/communication_estimate.h"
#include "braid/nn/optim/registry.h"
#include "braid/tensor/detail/integers.h"
#include "braid/tensor/parallel.h"

namespace braid::apps {

namespace {
void line(const char* what, const std::string& value) { std::printf("  %-34s %s\n", what, value.c_str()); }
std::string number(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// Memory and communication of one process of the mesh: the first one, whose shards are the largest.
void print_layout(const TrainConfig& config, const models::ModelConfig& model, int64_t T) {
  models::LayoutSizes sizes{std::max<int64_t>(1, config.parallel.data), config.parallel.context,
                            config.parallel.tensor};
  int64_t ranks = sizes.data * sizes.context * sizes.tensor;
  if (ranks == 1) return;
  const Arithmetic types = arithmetic(config);
  int64_t e = size_of(types.compute), m = size_of(types.masters), P = sizes.tensor;
  int64_t samples = detail::ceil_div(config.train.batch_size, sizes.data);
  models::StepShape step{
      .seq_len = T, .bytes_per_number = e, .checkpoint_activations = config.train.checkpoint_activations};
  step.samples.assign(static_cast<size_t>(config.train.accumulate), samples);
  models::StepVolume v = models::step_volume(model, sizes, {}, step);
  models::RankParameters held = models::rank_parameters(model, sizes, 0);
  TrainConfig share = config;
  share.train.batch_size = samples;
  models::TrainingMemory unsharded = expected_memory(share, model, T);
  double moments = unsharded.optimizer / unsharded.gradients, rows = double(T) / double(sizes.context);
  // A process keeps its shard of the activations of its samples, and the tensors that layers gathered from others:
  // keys, values and key-side weights, and the inputs of column-parallel layers.
  double gathered = 0;  // of all blocks; of the largest one where blocks are recomputed
  for (int64_t i = 0; i < model.n_layer; ++i) {
    double block =
        double(models::gathered_by_attention(model, sizes, {}, i, T)) + (P > 1 ? 2 * rows * double(model.dim) : 0);
    gathered = config.train.checkpoint_activations ? std::max(gathered, block) : gathered + block;
  }
  double activations = unsharded.activations / double(sizes.context * P) + double(e * samples) * gathered;
  double gradients = double(held.held * m), weights = gradients * unsharded.weights / unsharded.gradients;
  double optimizer = moments * double(held.owned * m), working = unsharded.working / double(P);
  std::printf("one of %lld processes: %lld data x %lld context x %lld tensor\n", static_cast<long long>(ranks),
              static_cast<long long>(sizes.data), static_cast<long long>(sizes.context),
              static_cast<long long>(sizes.tensor));
  line("weights", bytes_text(weights));
  line("gradients", bytes_text(gradients));
  line("optimizer", bytes_text(optimizer));
  line("activations (estimate)", bytes_text(activations));
  line("working space (estimate)", bytes_text(working));
  line("total memory", bytes_text(weights + gradients + optimizer + activations + working));
  std::printf("bytes that it sends per step\n");
  auto group = [](const char* what, const dist::CommStats& t) {
    if (t.total() == 0) return;
    line(what, bytes_text(double(t.total())));
    for (auto c : {dist::Collective::all_gather, dist::Collective::reduce_scatter, dist::Collective::all_to_all}) {
      if (t.bytes_of(c) > 0) line((std::string("  ") + dist::name(c)).c_str(), bytes_text(double(t.bytes_of(c))));
    }
  };
  group("between tensor ranks", v.tensor);
  group("between context ranks", v.context);
  group("between ranks with the same weights", v.replicas);
  group("between all ranks", v.world);
  line("total", bytes_text(double(v.total())));
  double overlapped = double(v.replicas.bytes_of(dist::Collective::reduce_scatter) +
                             v.world.bytes_of(dist::Collective::reduce_scatter));
  line("of it beside the backward pass", bytes_text(overlapped));
  double layers = double(v.tensor.total() + v.context.total()) / double(model.n_layer);
  line("per layer, in line with its work", bytes_text(layers));
}
}  // namespace

models::TrainingMemory expected_memory(const TrainConfig& config, const models::ModelConfig& model, int64_t seq_len) {
  return models::training_memory(
      model, {.batch = config.train.batch_size,
              .seq_len = seq_len,
              .bytes_per_number = size_of(arithmetic(config).compute),
              .optimizer_moments = static_cast<int64_t>(nn::state_suffixes(optimizer_options(config)).size()),
              .checkpoint_activations = config.train.checkpoint_activations,
              .attention_workspace = attention_workspace(config, parse_device(config.run.device))});
}

void check_memory(const TrainConfig& config, const models::ModelConfig& model, int64_t seq_len,
                  const dist::ProcessMesh& mesh, Device device) {
  // For several processes --dry-run finds such a mistake, for a GPU its allocator.
  if (mesh.world.size() > 1 || device != kCpu) return;
  double ids = 8.0 * double(config.train.batch_size) * double(config.train.accumulate) * double(seq_len);
  double needed = (expected_memory(config, model, seq_len).total() + ids) / 1e9;
  double there = double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE)) / 1e9;
  check(needed < 2 * there, ErrorKind::setting, [&] {
    return "a training step does not fit into memory: expected at most " + shortest(std::round(there)) +
           " GB, found about " + shortest(std::round(needed)) +
           " GB; lower train.batch_size, train.accumulate, data.seq_len or the model (--dry-run shows the parts)";
  });
}

int dry_run(const TrainConfig& config) {
  bool with_data = !config.data.path.empty();
  models::ModelConfig model =
      model_config(config, with_data ? models::text::read_manifest(config.data.path).vocab_size : 0);
  int64_t T = sequence_length(config, model), windows = 0;
  if (with_data) windows = models::text::Dataset(config.data.path, models::text::Split::train, T).size();
  models::ParameterCounts counts = models::count_parameters(model);
  models::Flops flops = models::flops_per_token(model, T);
  models::TrainingMemory memory = expected_memory(config, model, T);
  double tokens_per_step = double(config.train.batch_size) * double(config.train.accumulate) * double(T);
  const Device device = parse_device(config.run.device);
  const Arithmetic types = arithmetic(config);
  double peak = measured_flops(device, types.compute), step_flops = flops.training() * tokens_per_step;
  // Training steps of small models reach about a third of the rate of the matrix product alone on CPUs.
  double expected = step_flops / (0.33 * peak);

  std::printf("model\n");
  line("parameters", std::to_string(counts.total));
  line("  without embeddings", std::to_string(counts.non_embedding));
  line("  dynamic compose weights", std::to_string(counts.dynamic * model.n_layer));
  line("FLOPs per token, forward", number("%.4g GFLOP", flops.forward() / 1e9));
  line("FLOPs per token, training", number("%.4g GFLOP", flops.training() / 1e9));
  std::printf("memory of a step (batch %lld x %lld tokens, %s)\n", static_cast<long long>(config.train.batch_size),
              static_cast<long long>(T), config.train.dtype.c_str());
  line("weights", bytes_text(memory.weights) + (types.compute != types.masters ? ", f32 and copies in " : "") +
                      (types.compute != types.masters ? str(types.compute) : ""));
  line("gradients", bytes_text(memory.gradients));
  line("optimizer", bytes_text(memory.optimizer));
  line("activations", bytes_text(memory.activations));
  line("working space", bytes_text(memory.working));
  line("total", bytes_text(memory.total()));
  TrainConfig other = config;
  other.train.checkpoint_activations = !config.train.checkpoint_activations;
  line(config.train.checkpoint_activations ? "total if blocks were not recomputed" : "total if blocks were recomputed",
       bytes_text(expected_memory(other, model, T).total()));
  print_layout(config, model, T);
  std::printf("time of one process\n");
  line("tokens per step", number("%.0f", tokens_per_step));
  if (windows > 0)
    line("epochs over the run",
         number("%.2f", double(config.train.steps) * tokens_per_step / double(T) / double(windows)));
  line("matrix product of this machine", number("%.1f GFLOP/s", peak / 1e9) + ", " + str(types.compute) + " on " +
                                             (device == kCpu ? std::to_string(threads()) + " threads" : str(device)));
  line("expected time per step", number("%.3g s at a third of that rate", expected));
  line("expected time of the run", number("%.3g h", expected * double(config.train.steps) / 3600));
  return 0;
}

}  // namespace braid::apps
