#include "apps/train/plan/memory.h"

#include <algorithm>

#include "apps/cli/memory_text.h"
#include "apps/cli/text.h"
#include "apps/train/config/trained.h"
#include "apps/train/task/from_config.h"
#include "braid/tensor/base/integers.h"
#include "braid/tensor/base/machine_limits.h"

namespace braid::apps {

double memory_of_this_machine() { return detail::usable_memory(); }

models::TrainingSetup training_setup(const TrainConfig& config, int64_t seq_len, const models::MeshShape& mesh,
                                     bool gpu) {
  models::TrainingSetup setup{
      .samples = {detail::ceil_div(config.train.batch_size, mesh.data)},
      .accumulate = config.train.accumulate,
      .seq_len = seq_len,
      .compute = arithmetic(config).compute,
      .masters = !rounds_stochastically(config),
      .objective = objective(config),
      .optimizer = optimizer_options(config),
      .average = config.train.ema > 0,
      .recompute = config.train.recompute,
      .dropout = config.model.dropout,
      .z_loss = config.train.z_loss,
      .gpu = gpu,
      .attention_workspace = attention_workspace(config, gpu ? Device{Device::Kind::cuda} : kCpu),
      .copied_state = config.checkpoint.async,
      .mesh = mesh};
  if (config.lora.rank > 0) setup.lora = lora_options(config);
  return setup;
}

double memory_needed(const TrainConfig& config, const models::ModelSpec& model, int64_t seq_len,
                     const models::MeshShape& mesh, bool gpu) {
  return models::trace_step(model, training_setup(config, seq_len, mesh, gpu)).memory.total();
}

namespace {

struct Change {
  std::string settings;
  TrainConfig config;
  models::MeshShape mesh;
};

// The settings with one of the savings; those that do not apply are left out.
std::vector<Change> changes(const TrainConfig& config, const models::MeshShape& mesh, bool gpu) {
  std::vector<Change> list;
  const auto add = [&](const std::string& settings, auto&& apply) {
    list.push_back({settings, config, mesh});
    apply(list.back());
  };
  if (!config.train.recompute) add("train.recompute=true", [](Change& c) { c.config.train.recompute = true; });
  if (config.checkpoint.async && !gpu)
    add("checkpoint.async=false", [](Change& c) { c.config.checkpoint.async = false; });
  if (config.train.dtype != "bf16") add("train.dtype=bf16", [](Change& c) { c.config.train.dtype = "bf16"; });
  if (config.train.batch_size > mesh.data) {
    const int64_t micro = detail::ceil_div(config.train.batch_size, mesh.data) * config.train.accumulate;
    add(str("train.batch_size=", mesh.data, " train.accumulate=", micro),
        [micro](Change& c) { c.config.train.batch_size = c.mesh.data, c.config.train.accumulate = micro; });
  }
  constexpr int64_t kNode = 8;  // tensor ranks stay within a machine
  const int64_t ranks = mesh.ranks(), context = mesh.context;
  if (mesh.tensor < kNode && ranks % (context * kNode) == 0)  // of the processes that there are
    add("parallel.tensor=8", [=](Change& c) { c.mesh = {ranks / (context * kNode), context, kNode}; });
  if (mesh.tensor < kNode && ranks == 1)
    add(gpu ? "parallel.tensor=8 (8 GPUs)" : "parallel.tensor=8 (8 machines)",  // processes of one share its memory
        [](Change& c) { c.mesh.tensor = kNode; });
  return list;
}

// Infinite where the model cannot be sharded so.
double bytes_of(const Change& change, const models::ModelSpec& model, int64_t seq_len, bool gpu) {
  try {
    return memory_needed(change.config, model, seq_len, change.mesh, gpu);
  } catch (const Error&) {
    return std::numeric_limits<double>::infinity();
  }
}

}  // namespace

std::vector<MemorySaver> memory_savers(const TrainConfig& config, const models::ModelSpec& model, int64_t seq_len,
                                       const models::MeshShape& mesh, bool gpu) {
  const double now = memory_needed(config, model, seq_len, mesh, gpu);
  std::vector<MemorySaver> savers;
  for (const Change& change : changes(config, mesh, gpu)) {
    const double bytes = bytes_of(change, model, seq_len, gpu);
    if (bytes < now) savers.push_back({change.settings, bytes});
  }
  std::ranges::stable_sort(savers, {}, &MemorySaver::bytes);
  return savers;
}

std::string memory_advice(const TrainConfig& config, const models::ModelSpec& model, int64_t seq_len, double available,
                          const models::MeshShape& mesh, bool gpu) {
  std::vector<std::string> alone, together;
  for (const MemorySaver& saver : memory_savers(config, model, seq_len, mesh, gpu))
    alone.push_back(saver.settings + ": " + bytes_text(saver.bytes));
  // The most effective change, then the most effective one beside it.
  Change best{"", config, mesh};
  double bytes = bytes_of(best, model, seq_len, gpu);
  while (available > 0 && bytes > available) {
    std::vector<Change> next = changes(best.config, best.mesh, gpu);
    const auto least =
        std::ranges::min_element(next, {}, [&](const Change& change) { return bytes_of(change, model, seq_len, gpu); });
    if (least == next.end() || bytes_of(*least, model, seq_len, gpu) >= bytes) break;
    bytes = bytes_of(*least, model, seq_len, gpu);
    together.push_back(least->settings);
    best = std::move(*least);
  }
  std::string text = alone.empty() ? "" : "; one process then needs, with " + join(alone, ", with ");
  if (together.size() > 1) text += "; with " + join(together, " ") + ": " + bytes_text(bytes);
  return available > 0 && bytes > available
             ? text + "; beyond that lower data.seq_len, train.batch_size x train.accumulate or the model"
             : text;
}

void check_memory(const TrainConfig& config, const models::ModelSpec& model, int64_t seq_len,
                  const models::MeshShape& mesh, const Machine& machine) {
  if (machine.memory == 0) return;
  const double needed = memory_needed(config, model, seq_len, mesh, machine.gpu);
  check(needed <= machine.memory, ErrorKind::setting, [&] {
    return "a training step does not fit into memory: expected at most " + bytes_text(machine.memory) + " of one " +
           machine.name + ", found about " + bytes_text(needed) +
           memory_advice(config, model, seq_len, machine.memory, mesh, machine.gpu) + " (--dry-run shows the parts)";
  });
}

}  // namespace braid::apps
