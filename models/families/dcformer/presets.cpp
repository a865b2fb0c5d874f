// The named models: each size of each model type, its plain baseline, and the keys of single presets.

#include "braid/models/families/dcformer/config_keys.h"
#include "braid/models/families/dcformer/model_types.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models {
namespace {

// Plain attention over all earlier tokens, as in the baselines of the paper.
const KeyTexts baseline = {{"use_dcmha", "false"}, {"use_qk_norm", "false"}, {"window_size", "null"}};
struct Special {
  const char* preset;
  KeyTexts keys;
};
// Later rows win.
const std::vector<Special>& specials() {
  static const std::vector<Special> table = {
      {"dcformer-2.8b", {{"profile.name", "T1"}}},
      {"dcformer-2.8b", {{"vocab_size", "50257"}, {"norm_eps", "1e-6"}, {"bos_token_id", "1"}, {"eos_token_id", "2"}}},
      {"dcpythia-6.9b", {{"profile.name", "T1"}}},
      {"dcpythia-6.9b", {{"bos_token_id", "0"}, {"eos_token_id", "0"}}},
      {"pythia-6.9b", {{"bos_token_id", "0"}, {"eos_token_id", "0"}}},
      // The configuration of the published 8B training: its inference code attends to W keys in prefill and in decode.
      {"dcformer-8b", {{"intermediate_size", "5632"}, {"norm_eps", "1e-6"}, {"rope_base", "500000"}}},
      {"dcformer-8b", {{"mgate", "true"}, {"mgate_dim", "44"}, {"window_type", "LGLL"}, {"init", "pytorch"}}},
      {"dcformer-8b", {{"profile.name", "H-inf"}}},
      {"transformer-8b", {{"intermediate_size", "5632"}, {"norm_eps", "1e-6"}, {"rope_base", "500000"}}},
      {"transformer-8b", {{"init", "pytorch"}}},
      {"llama-tiny", {{"n_kv_head", "2"}, {"norm_eps", "1e-5"}}},
      {"smollm2-135m", {{"n_kv_head", "3"}, {"intermediate_size", "1536"}, {"norm_eps", "1e-5"}}},
      {"smollm2-135m", {{"rope_base", "100000"}, {"tie_word_embeddings", "true"}}},
      {"llama-3.2-1b", {{"n_kv_head", "8"}, {"intermediate_size", "8192"}, {"norm_eps", "1e-5"}}},
      {"llama-3.2-1b", {{"rope_base", "500000"}, {"tie_word_embeddings", "true"}, {"rope_scaling", "llama3"}}},
      {"llama-3.2-1b", {{"rope_scaling_factor", "32"}, {"rope_original_block_size", "8192"}}},
      {"llama-3-8b", {{"n_kv_head", "8"}, {"intermediate_size", "14336"}, {"norm_eps", "1e-5"}}},
      {"llama-3-8b", {{"rope_base", "500000"}}},
      {"mistral-tiny", {{"n_kv_head", "2"}, {"norm_eps", "1e-5"}, {"window_size", "128"}, {"window_type", "L"}}},
      {"mistral-7b", {{"n_kv_head", "8"}, {"intermediate_size", "14336"}, {"norm_eps", "1e-5"}}},
      {"mistral-7b", {{"window_size", "4096"}, {"window_type", "L"}}},
      {"qwen2-tiny", {{"n_kv_head", "2"}}},
      {"qwen2.5-0.5b", {{"n_kv_head", "2"}, {"intermediate_size", "4864"}, {"rope_base", "1e6"}}},
      {"qwen2.5-0.5b", {{"tie_word_embeddings", "true"}}},
      {"qwen3-tiny", {{"n_kv_head", "2"}}},
      {"qwen3-0.6b", {{"n_kv_head", "8"}, {"head_dim", "128"}, {"intermediate_size", "3072"}}},
      {"qwen3-0.6b", {{"rope_base", "1e6"}, {"tie_word_embeddings", "true"}}},
      {"olmo2-1b", {{"intermediate_size", "8192"}, {"rope_base", "500000"}}},
      {"gemma2-tiny", {{"n_kv_head", "2"}, {"window_size", "128"}, {"window_type", "LG"}}},
      {"gemma2-2b", {{"n_kv_head", "4"}, {"head_dim", "256"}, {"intermediate_size", "9216"}}},
      {"gemma2-2b", {{"window_size", "4096"}, {"window_type", "LG"}}},
      {"gemma3-tiny", {{"n_kv_head", "2"}, {"window_size", "128"}, {"window_type", "L5G"}}},
      {"gemma3-270m", {{"n_kv_head", "1"}, {"head_dim", "256"}, {"intermediate_size", "2048"}}},
      {"gemma3-270m", {{"window_size", "512"}, {"window_type", "L5G"}}},
      {"gemma3-1b", {{"n_kv_head", "1"}, {"head_dim", "256"}, {"intermediate_size", "6912"}}},
      {"gemma3-1b", {{"window_size", "512"}, {"window_type", "L5G"}}},
  };
  return table;
}

template <class Use>  // use(name, type, plain, size)
void each_preset(Use&& use) {
  for (const ModelType& type : model_types())
    for (const bool plain : {false, true})
      for (const PresetSize& size : type.sizes)
        if (!plain || !type.baseline.empty()) use(preset_name(type, size, plain), type, plain, size);
}

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  each_preset([&](const std::string& name, const ModelType&, bool, const PresetSize&) { names.push_back(name); });
  return names;
}

DcformerConfig unresolved_preset(const std::string& preset_name) {
  DcformerConfig config;
  each_preset([&](const std::string& name, const ModelType& type, bool plain, const PresetSize& size) {
    if (name != preset_name) return;
    const std::vector<Setting> table = key_table(config);
    const auto set_all = [&](const KeyTexts& keys) {
      for (const auto& [key, value] : keys) set_key(table, key, value);
    };
    set_family(config, type.name);
    config.n_layer = size.n_layer;
    config.dim = size.dim;
    config.n_head = size.n_head;
    config.block_size = size.block_size;
    config.vocab_size = size.vocab_size;
    if (plain) set_all(baseline);
    for (const Special& special : specials())
      if (special.preset == name) set_all(special.keys);
  });
  check(config.dim > 0, ErrorKind::setting, [&] {
    const std::vector<std::string> names = preset_names();
    return "unknown model preset '" + detail::preview(preset_name) + "'" + detail::did_you_mean(preset_name, names) +
           " (presets: " + detail::join(names, ", ") + ")";
  });
  return config;
}

DcformerConfig preset(const std::string& preset_name) {
  DcformerConfig config = unresolved_preset(preset_name);
  resolve(config);
  return config;
}

}  // namespace braid::models
