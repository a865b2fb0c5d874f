#include "braid/models/families/dcformer/model_types.h"

#include <algorithm>

#include "braid/tensor/error.h"

namespace braid::models {
namespace {

// The vocabulary of the published JAX configurations is 50256, that of the published folders 50257.
constexpr PresetSize dcformer_sizes[] = {
    {"tiny", 4, 256, 8, 512, 258},  // bytes and two special tokens: tests and the demo
    {"small", 12, 768, 12, 2048, 50256},
    {"405m", 24, 1024, 16, 2048, 50256},
    // The authors publish no configuration of these two; the shapes follow the names: their Transformer++
    // has 833.9M and 1438.8M parameters, with heads of 64 as at 405M.
    {"834m", 24, 1536, 24, 2048, 50256},
    {"1.4b", 24, 2048, 32, 2048, 50256},
    {"2.8b", 32, 2560, 32, 2048, 50256},
    {"8b", 48, 4096, 32, 4096, 152064},
};
constexpr PresetSize pythia_sizes[] = {
    {"tiny", 4, 256, 8, 512, 258},
    {"6.9b", 32, 4096, 32, 2048, 50257},
};

constexpr PresetSize muddformer_sizes[] = {
    {"tiny", 4, 256, 8, 512, 258},
    {"2.8b", 32, 2560, 32, 2048, 50432},
};
constexpr PresetSize muddpythia_sizes[] = {
    {"tiny", 4, 256, 8, 512, 258},
    {"1.4b", 24, 2048, 16, 2048, 50432},
    {"2.8b", 32, 2560, 32, 2048, 50432},
};

constexpr PresetSize llama_sizes[] = {
    {"llama-tiny", 4, 256, 8, 512, 258},
    {"smollm2-135m", 30, 576, 9, 8192, 49152},
    {"llama-3.2-1b", 16, 2048, 32, 131072, 128256},
    {"llama-3-8b", 32, 4096, 32, 8192, 128256},
};
constexpr PresetSize mistral_sizes[] = {
    {"mistral-tiny", 4, 256, 8, 512, 258},
    {"mistral-7b", 32, 4096, 32, 32768, 32000},
};
constexpr PresetSize qwen2_sizes[] = {
    {"qwen2-tiny", 4, 256, 8, 512, 258},
    {"qwen2.5-0.5b", 24, 896, 14, 32768, 151936},
};
constexpr PresetSize qwen3_sizes[] = {
    {"qwen3-tiny", 4, 256, 8, 512, 258},
    {"qwen3-0.6b", 28, 1024, 16, 40960, 151936},
};
constexpr PresetSize olmo2_sizes[] = {
    {"olmo2-tiny", 4, 256, 8, 512, 258},
    {"olmo2-1b", 16, 2048, 16, 4096, 100352},
};
constexpr PresetSize gemma2_sizes[] = {
    {"gemma2-tiny", 4, 256, 8, 512, 258},
    {"gemma2-2b", 26, 2304, 8, 8192, 256000},
};
constexpr PresetSize gemma3_sizes[] = {
    {"gemma3-tiny", 6, 256, 8, 512, 258},
    {"gemma3-270m", 18, 640, 4, 32768, 262144},
    {"gemma3-1b", 26, 1152, 4, 32768, 262144},
};
// The published Pythia suite.
constexpr PresetSize gpt_neox_sizes[] = {
    {"tiny", 4, 256, 8, 512, 258},       {"70m", 6, 512, 8, 2048, 50304},     {"160m", 12, 768, 12, 2048, 50304},
    {"410m", 24, 1024, 16, 2048, 50304}, {"1b", 16, 2048, 8, 2048, 50304},    {"1.4b", 24, 2048, 16, 2048, 50304},
    {"2.8b", 32, 2560, 32, 2048, 50304}, {"6.9b", 32, 4096, 32, 2048, 50432}, {"12b", 36, 5120, 40, 2048, 50688},
};

// LLaMA's keys, and those in which a successor differs.
KeyTexts like_llama(const KeyTexts& more = {}) {
  KeyTexts keys = {{"use_dcmha", "false"},        {"use_qk_norm", "false"},    {"window_size", "null"},
                   {"norm_eps", "1e-6"},          {"initializer_std", "0.02"}, {"compose_init", "identity"},
                   {"profile.rope_table", "auto"}};
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

// Those of every Gemma beside them.
KeyTexts like_gemma(const KeyTexts& more) {
  KeyTexts keys = like_llama({{"norm_place", "both"},
                              {"norm_offset", "true"},
                              {"hidden_act", "gelu_tanh"},
                              {"scale_embeddings", "true"},
                              {"tie_word_embeddings", "true"}});
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

}  // namespace

const std::vector<ModelType>& model_types() {
  static const std::vector<ModelType> table = {
      {"dcformer", "DCFormer", {}, "dcformer", "transformer", dcformer_sizes},
      {"dcpythia",
       "DCPythia",
       {{"norm", "layer"},
        {"ffn", "gelu"},
        {"use_linear_bias", "true"},
        {"use_parallel_residual", "true"},
        {"rotary_pct", "0.25"}},
       "dcpythia",
       "pythia",
       pythia_sizes},
      {"muddformer",
       "MUDDFormer",
       {{"use_dcmha", "false"},
        {"window_size", "null"},
        {"residual", "mudd"},
        {"expand_last", "true"},
        {"round64", "true"},
        {"dynamic_mlp_dim", "true"},
        {"norm_eps", "1e-6"},
        {"profile.qk_norm_eps", "1e-6"}},
       "muddformer",
       "",
       muddformer_sizes,
       true,
       {{"expand_last", "false"}, {"round64", "false"}, {"profile.rope_table", "bf16"}}},
      {"muddpythia",
       "MUDDPythia",
       {{"norm", "layer"},
        {"ffn", "gelu"},
        {"use_linear_bias", "true"},
        {"use_parallel_residual", "true"},
        {"rotary_pct", "0.25"},
        {"use_dcmha", "false"},
        {"window_size", "null"},
        {"residual", "mudd"},
        {"expand_last", "true"},
        {"round64", "true"},
        {"dynamic_mlp_dim", "true"}},
       "muddpythia",
       "",
       muddpythia_sizes,
       true,
       {{"expand_last", "false"}, {"round64", "false"}, {"profile.rope_table", "f16"}}},
      {"llama", "LlamaForCausalLM", like_llama(), "", "", llama_sizes},
      {"mistral", "MistralForCausalLM", like_llama(), "", "", mistral_sizes},
      {"qwen2", "Qwen2ForCausalLM", like_llama({{"qkv_bias", "true"}}), "", "", qwen2_sizes},
      {"qwen3", "Qwen3ForCausalLM", like_llama({{"use_qk_norm", "true"}, {"profile.qk_norm_eps", "1e-6"}}), "", "",
       qwen3_sizes},
      {"olmo2", "Olmo2ForCausalLM",
       like_llama({{"norm_place", "post"},
                   {"use_qk_norm", "true"},
                   {"qk_norm_all_heads", "true"},
                   {"profile.qk_norm_eps", "1e-6"}}),
       "", "", olmo2_sizes},
      {"gemma2", "Gemma2ForCausalLM", like_gemma({{"attention_softcap", "50"}, {"logit_softcap", "30"}}), "", "",
       gemma2_sizes},
      {"gemma3_text", "Gemma3ForCausalLM",
       like_gemma({{"use_qk_norm", "true"},
                   {"profile.qk_norm_eps", "1e-6"},
                   {"rope_base", "1e6"},
                   {"rope_local_base", "10000"}}),
       "", "", gemma3_sizes},
      {"gpt_neox",
       "GPTNeoXForCausalLM",
       {{"norm", "layer"},
        {"ffn", "gelu"},
        {"use_linear_bias", "true"},
        {"use_parallel_residual", "true"},
        {"rotary_pct", "0.25"},
        {"use_dcmha", "false"},
        {"use_qk_norm", "false"},
        {"window_size", "null"},
        {"initializer_std", "0.02"},
        {"compose_init", "identity"},
        {"profile.rope_table", "auto"}},
       "gpt-neox",
       "",
       gpt_neox_sizes},
  };
  return table;
}

const ModelType& model_type_named(const std::string& name) {
  const auto& types = model_types();
  const auto at = std::find_if(types.begin(), types.end(), [&](const ModelType& type) { return type.name == name; });
  check(at != types.end(), ErrorKind::misuse, [&] { return "no model type '" + name + "' of DCFormer's family"; });
  return *at;
}

std::vector<std::string> model_type_names() {
  std::vector<std::string> names;
  for (const ModelType& type : model_types()) names.push_back(type.name);
  return names;
}

std::string preset_name(const ModelType& type, const PresetSize& size, bool baseline) {
  const std::string& prefix = baseline ? type.baseline : type.presets;
  return prefix.empty() ? size.name : prefix + "-" + size.name;
}

std::vector<std::string> preset_names(const ModelType& type) {
  std::vector<std::string> names;
  for (const PresetSize& size : type.sizes) names.push_back(preset_name(type, size));
  if (type.baseline.empty()) return names;
  for (const PresetSize& size : type.sizes) names.push_back(preset_name(type, size, true));
  return names;
}

}  // namespace braid::models
