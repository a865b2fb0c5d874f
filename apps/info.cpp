// braid info: what a model is and what it costs, without building it.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "apps/cli/files.h"
#include "apps/cli/model_flags.h"
#include "apps/cli/text.h"
#include "apps/commands.h"
#include "braid/models/dcformer/config.h"
#include "braid/models/dcformer/cost.h"
#include "braid/models/pretrained.h"
#include "braid/tensor/error.h"

namespace braid::apps {
namespace {

using models::ModelConfig;
using Keys = std::vector<std::pair<std::string, std::string>>;

// A line of the table: shown to people as `shown`, written to JSON as `key` and `number`.
struct Row {
  std::string key, label;
  double number = 0;
  std::string shown;
  std::string note = "";
};
struct Section {
  std::string key, title;
  std::vector<Row> rows;
};

// 13191296 -> "13 191 296"
std::string grouped(int64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, " ");
  return text;
}

std::string bytes_text(double bytes) {
  const char* unit = "B";
  double size = bytes;
  for (const char* next : {"KiB", "MiB", "GiB", "TiB", "PiB"}) {
    if (size < 1024) break;
    size /= 1024;
    unit = next;
  }
  return human(size, 4) + " " + unit;
}

std::string percent(double part, double whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100 * part / whole);
  return text;
}

Row count_row(const char* key, const char* label, int64_t n, const std::string& note = "") {
  return {key, label, static_cast<double>(n), grouped(n), note};
}
Row bytes_row(const char* key, const char* label, double bytes, const std::string& note = "") {
  return {key, label, bytes, bytes_text(bytes), note};
}

Section parameter_section(const ModelConfig& config) {
  const models::ParameterCounts c = models::count_parameters(config);
  Section s{"parameters", "Parameters", {}};
  s.rows.push_back(count_row("attention", "a layer: attention", c.attention));
  if (c.qk_norm) s.rows.push_back(count_row("qk_norm", "         QK-norm", c.qk_norm));
  if (c.dynamic) {
    const std::string share =
        "+" + percent(static_cast<double>(c.dynamic), static_cast<double>(c.per_layer - c.dynamic));
    s.rows.push_back(count_row("dynamic", "         dynamic weights", c.dynamic, share));
  }
  if (c.static_proj) s.rows.push_back(count_row("static_proj", "         static mixing", c.static_proj));
  s.rows.push_back(count_row("feed_forward", "         feed-forward", c.feed_forward));
  s.rows.push_back(count_row("norms", "         norms", c.norms));
  s.rows.push_back(count_row("per_layer", "         all", c.per_layer));
  s.rows.push_back(count_row("non_embedding", "layers and final norm", c.non_embedding));
  s.rows.push_back(count_row("embedding", "embedding and output", c.embedding));
  s.rows.push_back(count_row("total", "total", c.total, human(static_cast<double>(c.total), 3)));
  return s;
}

Section flop_section(const ModelConfig& config, int64_t seq_len) {
  const models::Flops f = models::flops_per_token(config, seq_len);
  Section s{"flops_per_token", "FLOPs per token, forward, sequences of " + std::to_string(seq_len), {}};
  const auto add = [&](const char* key, const char* label, double flops, const std::string& note = "") {
    if (flops > 0) s.rows.push_back({key, label, flops, human(flops, 4), note});
  };
  add("projections", "q, k, v, output projections", f.projections);
  add("feed_forward", "feed-forward", f.feed_forward);
  add("attention", "attention over visible keys", f.attention);
  add("generation", "dynamic weights", f.generation);
  add("low_rank", "compose: low rank", f.low_rank);
  add("diagonal", "compose: gates", f.diagonal);
  add("static_proj", "compose: static", f.static_proj);
  add("logits", "logits", f.logits);
  const double extra = f.forward() - f.plain();
  add("forward", "forward", f.forward(),
      extra > 0 ? "+" + percent(extra, f.plain()) + " over the same model without composition" : "");
  add("training", "training step (3 x forward)", f.training());
  return s;
}

std::vector<Section> memory_sections(const ModelConfig& config, int64_t seq_len, int64_t batch) {
  models::TrainingSetup setup{.batch = batch, .seq_len = seq_len};
  const models::TrainingMemory m = models::training_memory(config, setup);
  setup.checkpoint_activations = true;
  const models::TrainingMemory saving = models::training_memory(config, setup);
  setup.bytes_per_number = 2;
  const models::TrainingMemory mixed_saving = models::training_memory(config, setup);
  setup.checkpoint_activations = false;
  const models::TrainingMemory mixed = models::training_memory(config, setup);
  const std::string what = std::to_string(batch) + " x " + std::to_string(seq_len) + " tokens";
  Section training{"training_memory", "Memory to train, f32, AdamW, micro-batch of " + what + " (estimate)", {}};
  training.rows = {bytes_row("weights", "weights", m.weights),
                   bytes_row("gradients", "gradients", m.gradients),
                   bytes_row("optimizer", "optimizer", m.optimizer),
                   bytes_row("activations", "activations", m.activations),
                   bytes_row("activations_checkpointed", "  when blocks are recomputed", saving.activations,
                             "train.checkpoint_activations=true"),
                   bytes_row("working", "working memory", m.working),
                   bytes_row("total", "total", m.total()),
                   bytes_row("total_checkpointed", "  when blocks are recomputed", saving.total()),
                   bytes_row("total_bf16", "total in bf16", mixed.total(), "train.dtype=bf16, f32 master weights"),
                   bytes_row("total_bf16_checkpointed", "  when blocks are recomputed", mixed_saving.total())};
  const models::CacheSize cache = models::cache_bytes(config, batch, seq_len);
  Section inference{"inference_memory", "Memory to generate, f32, " + what, {}};
  inference.rows = {bytes_row("weights", "weights", m.weights),
                    bytes_row("cache_per_token", "cache, a token", cache.per_token, "before local windows are full"),
                    bytes_row("cache", "cache, full", cache.kept), bytes_row("total", "total", m.weights + cache.kept),
                    bytes_row("total_bf16", "total in bf16", (m.weights + cache.kept) / 2, "--dtype bf16")};
  return {training, inference};
}

void print_configuration(const std::string& name, const ModelConfig& config) {
  std::printf("%s\n\nConfiguration\n", name.c_str());
  for (const std::string& key : models::config_keys()) {
    if (key.starts_with("profile.") && !config.use_dcmha && key != "profile.layer_windows") continue;
    std::string value = models::get_key(config, key);
    if (value.size() > 25) value = preview(value, 22);
    std::printf("  %-28s %-26s %s\n", key.c_str(), value.c_str(), models::key_help(key).c_str());
  }
}

void print_sections(const std::vector<Section>& sections) {
  for (const Section& section : sections) {
    std::printf("\n%s\n", section.title.c_str());
    for (const Row& row : section.rows) {
      std::printf("  %-30s %18s", row.label.c_str(), row.shown.c_str());
      std::printf(row.note.empty() ? "\n" : "   %s\n", row.note.c_str());
    }
  }
}

void print_json(const ModelConfig& config, int64_t seq_len, int64_t batch, const std::vector<Section>& sections) {
  std::string text = "{\n\"config\": " + models::write_config(config) + ",\n\"seq_len\": " + std::to_string(seq_len) +
                     ",\n\"batch\": " + std::to_string(batch);
  for (const Section& section : sections) {
    text += ",\n\"" + section.key + "\": {";
    for (size_t i = 0; i < section.rows.size(); ++i)
      text += (i ? ", \"" : "\"") + section.rows[i].key + "\": " + decimal(section.rows[i].number);
    text += "}";
  }
  std::printf("%s\n}\n", text.c_str());
}

// The weights of a folder, whose names, shapes and types have been checked; no data is read.
Section weight_section(const models::WeightFormat& layout) {
  int64_t bytes = 0;
  std::set<std::string> files;
  for (const models::StoredTensor& t : layout.tensors) {
    bytes += numel(t.shape) * size_of(t.dtype);
    files.insert(t.file);
  }
  Section s{"stored_weights", "Weights in the folder", {}};
  s.rows = {count_row("tensors", "tensors", static_cast<int64_t>(layout.tensors.size()), layout.describe()),
            count_row("files", "files", static_cast<int64_t>(files.size())),
            bytes_row("bytes", "size", static_cast<double>(bytes))};
  return s;
}

// A preset's name, a config.json, a model folder, or a run folder with checkpoints. Where there are weights, they are
// checked against their configuration and described in `sections`.
ModelConfig load(const std::string& model, const Keys& keys, std::vector<Section>& sections) {
  namespace fs = std::filesystem;
  std::error_code none;
  const std::vector<std::string> names = models::preset_names();
  const bool preset = std::find(names.begin(), names.end(), model) != names.end();
  const bool looks_like_file = model.find('/') != std::string::npos || model.ends_with(".json");
  if (preset || (!fs::exists(model, none) && !looks_like_file)) return models::configure(model, keys);
  if (!fs::is_directory(model, none) && model.ends_with(".json"))
    return models::configure(models::read_config(read_text(model, 1 << 20), model), keys);
  const models::ModelFolder folder = models::inspect_model(models::find_model(model));
  if (folder.layout) sections.push_back(weight_section(*folder.layout));
  return models::configure(folder.config, keys);
}

int run_info(const Arguments& arguments) {
  const Keys keys = model_keys(arguments);
  const std::string name = arguments.list("MODEL").at(0);
  std::vector<Section> stored;
  const ModelConfig config = load(name, keys, stored);
  const int64_t seq_len = arguments.has("seq-len") ? arguments.get_int("seq-len") : config.block_size;
  const int64_t batch = arguments.get_int("batch");
  check(seq_len <= config.block_size, ErrorKind::setting, [&] {
    return "--seq-len is longer than the model's sequences: expected at most block_size = " +
           std::to_string(config.block_size) + ", found " + std::to_string(seq_len) +
           "; add block_size=" + std::to_string(seq_len);
  });
  std::vector<Section> sections = {parameter_section(config), flop_section(config, seq_len)};
  for (const Section& section : memory_sections(config, seq_len, batch)) sections.push_back(section);
  for (const Section& section : stored) sections.push_back(section);
  if (arguments.has("json")) {
    print_json(config, seq_len, batch, sections);
  } else {
    print_configuration(name, config);
    print_sections(sections);
  }
  return 0;
}

// The presets and every key of config.json, for --help.
std::string details() {
  std::string text = "presets: " + join(models::preset_names(), ", ") + "\n\nkeys:\n";
  for (const std::string& key : models::config_keys()) {
    std::string row = "  " + key;
    row.resize(std::max<size_t>(row.size() + 2, 30), ' ');
    text += row + models::key_help(key) + "\n";
  }
  text.pop_back();
  return text;
}

}  // namespace

Command info_command() {
  return {
      .name = "info",
      .summary = "parameters, FLOPs and memory of a model, without building it",
      .positionals = {{.name = "MODEL", .help = "a preset, a config.json, a model folder or a run folder"}},
      .flags = {integer_flag("seq-len", "T", "tokens per sequence (default: the model's block_size)", "", 1, 1 << 30),
                integer_flag("batch", "B", "sequences at a time", "1", 1, 1 << 30),
                profile_flag(),
                {.name = "json", .help = "print JSON"}},
      .overrides = kModelOverrides,
      .details = details(),
      .examples = {"braid info dcformer-405m", "braid info dcformer-tiny dim=512 n_layer=8 --seq-len 256 --batch 8",
                   "braid info out/run/step-00001000 --json"},
      .run = run_info};
}

}  // namespace braid::apps
