#include "apps/train/setup.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "apps/cli/text.h"
#include "braid/autograd/ops.h"
#include "braid/tensor/kernels/attention.h"
#include "braid/models/dcformer/family.h"
#include "braid/nn/optim/registry.h"

namespace braid::apps {

namespace {
// A setting's value as the plain text that models::configure() takes.
std::string plain(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? *text : toml_text(value);
}
}  // namespace

models::ModelConfig model_config(const TrainConfig& config, int64_t vocabulary) {
  check(!config.model.preset.empty() || !config.model.values.empty(), ErrorKind::setting, [] {
    return std::string(
        "no model is named: expected model.preset (for example dcformer-tiny; braid info lists them) or model.* sizes");
  });
  std::vector<std::pair<std::string, std::string>> keys;
  if (vocabulary > 0 && !config.model.values.contains("vocab_size"))
    keys.emplace_back("vocab_size", std::to_string(vocabulary));
  for (const auto& [key, value] : config.model.values) keys.emplace_back(key, plain(value));
  models::ModelConfig model = models::configure(config.model.preset, keys);
  check(model.vocab_size >= vocabulary, ErrorKind::setting, [&] {
    return "model.vocab_size is too small for the data: expected at least " + std::to_string(vocabulary) + ", found " +
           std::to_string(model.vocab_size);
  });
  return model;
}

nn::OptimizerOptions optimizer_options(const TrainConfig& config) {
  const TrainConfig::Optimizer& o = config.optimizer;
  return {.name = o.name,
          .lr = o.lr,
          .beta1 = o.beta1,
          .beta2 = o.beta2,
          .eps = o.eps,
          .weight_decay = o.weight_decay,
          .decay = nn::parse_decay(o.decay),
          .momentum = o.momentum};
}

int64_t optimizer_moments(const TrainConfig& config) {
  return static_cast<int64_t>(nn::state_suffixes(optimizer_options(config)).size());
}

nn::Schedule schedule(const TrainConfig& config) {
  auto falling = static_cast<int64_t>(static_cast<double>(config.train.steps) * config.schedule.decay_fraction);
  return {.kind = nn::parse_schedule(config.schedule.name),
          .peak = config.optimizer.lr,
          .steps = config.train.steps,
          .warmup = config.schedule.warmup,
          .final_fraction = config.schedule.final_fraction,
          .decay_steps =
              std::clamp<int64_t>(falling, 1, std::max<int64_t>(1, config.train.steps - config.schedule.warmup))};
}

int64_t sequence_length(const TrainConfig& config, const models::ModelConfig& model) {
  check(config.data.seq_len <= model.block_size, ErrorKind::setting, [&] {
    return "data.seq_len is longer than the model's block_size: expected at most " + std::to_string(model.block_size) +
           ", found " + std::to_string(config.data.seq_len);
  });
  return config.data.seq_len > 0 ? config.data.seq_len : model.block_size;
}

Arithmetic arithmetic(const TrainConfig& config) {
  DType compute = DType::f32;
  parse_dtype(config.train.dtype, compute);
  return {compute == DType::bf16 ? DType::f32 : compute, compute};
}

int64_t attention_workspace(const TrainConfig& config, Device device) {
  if (device == kCpu) return 0;
  return config.train.attention_workspace > 0 ? config.train.attention_workspace << 20 : kAttentionWorkspace;
}

std::unique_ptr<models::LanguageModel> make_model(const TrainConfig& config, const models::ModelConfig& model,
                                                  const dist::ProcessMesh& mesh, Device device) {
  MemoryScope scope(MemoryUse::weights);
  RandomKey key = child({static_cast<uint64_t>(config.run.seed), 0}, "parameters");
  auto made = models::as_language_model(models::DcformerSpec(model).make(key, mesh));
  made->to(arithmetic(config).masters);
  made->to(device);
  made->set_recompute(config.train.checkpoint_activations);
  made->set_attention_workspace(attention_workspace(config, device));
  return made;
}

models::TrainingMemory expected_memory(const TrainConfig& config, const models::ModelConfig& model, int64_t seq_len) {
  return models::training_memory(model,
                                 {.batch = config.train.batch_size,
                                  .seq_len = seq_len,
                                  .bytes_per_number = size_of(arithmetic(config).compute),
                                  .optimizer_moments = optimizer_moments(config),
                                  .checkpoint_activations = config.train.checkpoint_activations,
                                  .attention_workspace = attention_workspace(config, parse_device(config.run.device))});
}

void check_memory(const TrainConfig& config, const models::ModelConfig& model, int64_t seq_len,
                  const dist::ProcessMesh& mesh, Device device) {
  // A slip of the pen in a job of many is found by --dry-run, one on a card by its allocator.
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

models::Batch read_batch(const models::text::Dataset& data, const std::vector<int64_t>& indices) {
  auto B = static_cast<int64_t>(indices.size());
  int64_t T = data.seq_len();
  std::vector<int32_t> ids, targets, window(static_cast<size_t>(T + 1));
  for (int64_t i : indices) {
    data.window(i, window);
    ids.insert(ids.end(), window.begin(), window.end() - 1);
    targets.insert(targets.end(), window.begin() + 1, window.end());
  }
  return models::text_batch(from_vector(ids, {B, T}), from_vector(targets, {B, T}));
}

namespace {
// The data rank's part of the samples of a micro-batch.
std::vector<int64_t> share(const std::vector<int64_t>& all, const dist::ProcessMesh& mesh) {
  dist::Partition parts = dist::even_partition(static_cast<int64_t>(all.size()), mesh.data.size());
  const dist::Range& mine = parts.single(mesh.data.rank());
  return {all.begin() + mine.begin, all.begin() + mine.end};
}
}  // namespace

std::vector<models::Batch> step_batches(const TrainConfig& config, const models::text::Dataset& data,
                                        const models::text::Sampler& sampler, int64_t first,
                                        const dist::ProcessMesh& mesh) {
  std::vector<models::Batch> batches;
  int64_t B = config.train.batch_size;
  for (int64_t m = 0; m < config.train.accumulate; ++m) {
    std::vector<int64_t> indices;
    for (int64_t b = 0; b < B; ++b) indices.push_back(sampler.at(first++));
    batches.push_back(read_batch(data, share(indices, mesh)));
  }
  return batches;
}

std::vector<models::Batch> validation_batches(const TrainConfig& config, const models::text::Dataset& data,
                                              const dist::ProcessMesh& mesh) {
  std::vector<models::Batch> batches;
  int64_t wanted = std::min(data.size(), config.eval.batches * config.train.batch_size);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < wanted; ++i) {
    indices.push_back(i * data.size() / wanted);
    if (static_cast<int64_t>(indices.size()) == config.train.batch_size || i + 1 == wanted) {
      batches.push_back(read_batch(data, share(indices, mesh)));
      indices.clear();
    }
  }
  return batches;
}

std::vector<std::string> changed_settings(const std::filesystem::path& file, const Schema& now, TrainConfig& saved) {
  const Schema then = train_schema(saved, models::config_keys());
  load_config(then, file, {});
  std::vector<std::string> changed = differences(then, now);
  std::erase_if(changed, [](const std::string& line) { return line.starts_with("run.out:"); });
  return changed;
}

double measured_flops(Device device, DType dtype) {
  NoGrad off;
  const int64_t n = device == kCpu ? 768 : 4096;
  Tensor x = full({n, n}, 0.5, dtype, device), y = full({n, n}, 0.25, dtype, device);
  double best = 1e30;
  for (int i = 0; i < 6; ++i) {
    synchronize(device);
    auto start = std::chrono::steady_clock::now();
    matmul(x, y);
    synchronize(device);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  const double side = static_cast<double>(n);
  return 2 * side * side * side / best;
}

}  // namespace braid::apps
