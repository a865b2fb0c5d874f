// The sections of `braid info` for DCFormer and DCPythia.
#include <cstdio>

#include "braid/models/cost/trace.h"
#include "braid/models/families/dcformer/cost.h"
#include "braid/models/families/dcformer/family.h"
#include "braid/models/families/dcformer/model.h"
#include "braid/nn/inference/quantize.h"

namespace braid::models {
namespace {

std::string percent(double part, double whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100 * part / whole);
  return text;
}

InfoRow count_row(const std::string& key, const std::string& label, int64_t n, const std::string& note = "") {
  return {key, label, static_cast<double>(n), InfoUnit::count, note};
}
InfoRow bytes_row(const char* key, const char* label, double bytes, const std::string& note = "") {
  return {key, label, bytes, InfoUnit::bytes, note};
}

InfoSection parameter_section(const DcformerConfig& config) {
  const ParameterCounts c = count_parameters(config);
  InfoSection s{"parameters", "Parameters", {}};
  s.rows.push_back(count_row("attention", "a layer: attention", c.attention));
  if (c.qk_norm) s.rows.push_back(count_row("qk_norm", "         QK-norm", c.qk_norm));
  if (c.dynamic) {
    const std::string share =
        "+" + percent(static_cast<double>(c.dynamic), static_cast<double>(c.per_layer - c.dynamic));
    s.rows.push_back(count_row("dynamic", "         dynamic weights", c.dynamic, share));
    for (const std::string& branch : config.profile.branches)
      s.rows.push_back(
          count_row("branch_" + branch, "           branch " + branch, c.dynamic / config.dynamic_branches()));
  }
  if (c.static_proj) s.rows.push_back(count_row("static_proj", "         static mixing", c.static_proj));
  s.rows.push_back(count_row("feed_forward", "         feed-forward", c.feed_forward));
  s.rows.push_back(count_row("norms", "         norms", c.norms));
  if (c.other) s.rows.push_back(count_row("other", "         other", c.other));
  s.rows.push_back(count_row("per_layer", "         all", c.per_layer));
  if (c.depth) s.rows.push_back(count_row("depth", "connections over depth", c.depth));
  s.rows.push_back(
      count_row("non_embedding", c.depth ? "layers, these and final norm" : "layers and final norm", c.non_embedding));
  s.rows.push_back(count_row("embedding", "embedding and output", c.embedding));
  s.rows.push_back(count_row("total", "total", c.total));
  return s;
}

InfoSection flop_section(const DcformerConfig& config, int64_t seq_len) {
  const Flops f = flops_per_token(config, seq_len);
  InfoSection s{"flops_per_token", str("FLOPs per token, forward, sequences of ", seq_len), {}};
  const auto add = [&](const char* key, const char* label, double flops, const std::string& note = "") {
    if (flops > 0) s.rows.push_back({key, label, flops, InfoUnit::flops, note});
  };
  add("projections", "q, k, v, output projections", f.projections);
  add("feed_forward", "feed-forward", f.feed_forward);
  add("attention", "attention over unmasked keys", f.attention);
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

std::vector<InfoSection> memory_sections(const DcformerConfig& config, int64_t seq_len, int64_t batch) {
  const auto memory = [&](DType compute, bool recompute, bool gpu = false) {
    return trace_step(DcformerSpec(config), {.samples = {batch},
                                             .seq_len = seq_len,
                                             .compute = compute,
                                             .recompute = recompute,
                                             .gpu = gpu,
                                             .attention_workspace = 1})  // its size changes nothing that is kept
        .memory;
  };
  const TrainingMemory m = memory(DType::f32, false), gpu = memory(DType::f32, false, true);
  const TrainingMemory recomputed = memory(DType::f32, true);
  const TrainingMemory mixed = memory(DType::bf16, false), mixed_recomputed = memory(DType::bf16, true);
  const std::string what = str(batch, " x ", seq_len, " tokens");
  InfoSection training{"training_memory", "Memory to train, f32, AdamW, micro-batch of " + what, {}};
  training.rows = {
      bytes_row("weights", "weights", m.weights),
      bytes_row("gradients", "gradients", m.gradients),
      bytes_row("optimizer", "optimizer", m.optimizer),
      bytes_row("activations", "activations", m.activations),
      bytes_row("activations_gpu", "  on a GPU, at most", gpu.max_activations, "where cheap results are kept too"),
      bytes_row("activations_checkpointed", "  when blocks are recomputed, at most", recomputed.max_activations,
                "train.recompute=true"),
      bytes_row("working", "working memory", m.working),
      bytes_row("total", "total", m.total()),
      bytes_row("total_checkpointed", "  when blocks are recomputed", recomputed.total()),
      bytes_row("total_bf16", "total in bf16", mixed.total(), "train.dtype=bf16, f32 master weights"),
      bytes_row("total_bf16_checkpointed", "  when blocks are recomputed", mixed_recomputed.total())};
  const CacheSize cache = cache_bytes(config, batch, seq_len);
  const auto model = shape_only_model(config);
  const auto quantised = [&](int bits) {
    nn::Linear table;  // a tied table is copied
    if (config.tie_word_embeddings) table = nn::Linear(empty({config.vocab_size, config.dim}, DType::f32, kMeta));
    return static_cast<double>(nn::quantized_bytes(model, bits) + nn::quantized_bytes(table, bits));
  };
  const double int8_weights = quantised(8), int4_weights = quantised(4);
  const auto weights = 4 * static_cast<double>(count_parameters(config).total);
  InfoSection inference{"inference_memory", "Memory to generate, f32, " + what, {}};
  inference.rows = {
      bytes_row("weights", "weights", weights),
      bytes_row("cache_per_token", "cache, a token", cache.per_token, "before local windows are full"),
      bytes_row("cache", "cache, full", cache.full),
      bytes_row("total", "total", weights + cache.full),
      bytes_row("total_bf16", "total in bf16", (weights + cache.full) / 2, "--dtype bf16"),
      bytes_row("weights_int8", "weights, linear layers in int8", int8_weights, "--dtype int8, on the CPU"),
      bytes_row("total_int8", "total with them", int8_weights + cache.full),
      bytes_row("weights_int4", "weights, linear layers in int4", int4_weights, "--dtype int4, on the CPU"),
      bytes_row("total_int4", "total with them", int4_weights + cache.full)};
  return {training, inference};
}

}  // namespace

std::vector<InfoSection> DcformerSpec::info(const InfoRequest& request) const {
  std::vector<InfoSection> sections = {parameter_section(config_), flop_section(config_, request.seq_len)};
  for (InfoSection& section : memory_sections(config_, request.seq_len, request.batch))
    sections.push_back(std::move(section));
  return sections;
}

}  // namespace braid::models
