#include "braid/models/folders/gguf/architecture.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::gguf {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// A model type that stands twice is written under its own row and read as the first one of the name.
const Architecture kArchitectures[] = {
    {"llama", "llama", "LlamaForCausalLM", true, true},
    {"llama", "mistral", "MistralForCausalLM", true},
    {"qwen2", "qwen2", "Qwen2ForCausalLM"},
    {"qwen3", "qwen3", "Qwen3ForCausalLM", false, true},
    {.name = "olmo2", .model_type = "olmo2", .class_name = "Olmo2ForCausalLM", .norms_behind = true},
    {.name = "gemma2",
     .model_type = "gemma2",
     .class_name = "Gemma2ForCausalLM",
     .norms_behind = true,
     .norm_offset = true,
     .local_period = 2},
    {.name = "gemma3",
     .model_type = "gemma3_text",
     .class_name = "Gemma3ForCausalLM",
     .norms_behind = true,
     .norm_offset = true,
     .local_period = 6},
};

struct Names {
  std::string file, folder;
};
const Names kModules[] = {{"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};
const Names kLayerModules[] = {{"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
                               {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
                               {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"},
                               {"attn_k_norm", "self_attn.k_norm"}, {"ffn_norm", "post_attention_layernorm"},
                               {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
                               {"ffn_down", "mlp.down_proj"}};
// In front of those, of models with norms behind attention and FFN.
const Names kNormsBehind[] = {{"post_attention_norm", "post_attention_layernorm"},
                              {"ffn_norm", "pre_feedforward_layernorm"},
                              {"post_ffw_norm", "post_feedforward_layernorm"}};
constexpr std::string_view kFileLayers = "blk.", kFolderLayers = "model.layers.";

// Keys behind "llama." with an integer or number, and their keys in config.json.
const Names kKeys[] = {{"context_length", "max_position_embeddings"},
                       {"embedding_length", "hidden_size"},
                       {"block_count", "num_hidden_layers"},
                       {"feed_forward_length", "intermediate_size"},
                       {"attention.head_count", "num_attention_heads"}};

std::optional<std::string> translated(const std::string& name, const Architecture& a, std::string Names::*from,
                                      std::string Names::*to, std::string_view layers_from,
                                      std::string_view layers_to) {
  const size_t end = name.rfind('.');
  if (end == std::string::npos) return {};
  const std::string kind = name.substr(end);
  if (kind != ".weight" && kind != ".bias") return {};
  std::string prefix, module = name.substr(0, end);
  const bool in_layer = module.starts_with(layers_from);
  if (in_layer) {
    const size_t dot = module.find('.', layers_from.size());
    if (dot == std::string::npos) return {};
    prefix = std::string(layers_to) + module.substr(layers_from.size(), dot + 1 - layers_from.size());
    module = module.substr(dot + 1);
  }
  std::vector<std::span<const Names>> tables = {kModules};
  if (in_layer) tables = {kLayerModules};
  if (in_layer && a.norms_behind) tables.insert(tables.begin(), kNormsBehind);
  for (const std::span<const Names> table : tables)
    for (const Names& row : table)
      if (row.*from == module) return prefix + row.*to + kind;
  return {};
}

// Keys behind "llama." for what these models do not have. Neutral are 0, and 1 for scales.
const Names kAbsent[] = {{"expert_count", "0"},
                         {"attention.scale", "0"},
                         {"attention.clamp_kqv", "0"},
                         {"attention.max_alibi_bias", "0"},
                         {"attn_logit_softcapping", "0"},
                         {"final_logit_softcapping", "0"},
                         {"embedding_scale", "1"},
                         {"residual_scale", "1"},
                         {"logit_scale", "1"},
                         {"rope.scale_linear", "1"},
                         {"rope.scaling.attn_factor", "1"}};

// Keys behind "llama." beside those two lists that are read, or that do not matter for what a model computes.
const std::vector<std::string> kOthers = detail::split(
    "attention.head_count_kv attention.key_length attention.value_length attention.layer_norm_rms_epsilon "
    "attention.causal attention.sliding_window attention.sliding_window_pattern rope.dimension_count rope.freq_base "
    "rope.freq_base_swa rope.scaling.type rope.scaling.factor rope.scaling.original_context_length "
    "rope.scaling.finetuned vocab_size",
    ' ');

// The square of what scores are divided by. No key says it: that of the largest published Gemma is of other heads.
int64_t score_dim(const Architecture& a, int64_t layers, int64_t width, int64_t heads, int64_t head_dim) {
  return layers == (a.local_period == 2 ? 46 : 62) ? width / heads : head_dim;
}

// What the frequencies of llama3's scaling are divided by.
std::vector<double> llama3_factors(double base, int64_t head_dim, double factor, double low, double high,
                                   double original) {
  std::vector<double> factors;
  for (int64_t i = 0; i < head_dim / 2; ++i) {
    const double wave =
        2 * std::numbers::pi * std::pow(base, 2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
    const double smooth = std::clamp((original / wave - low) / (high - low), 0.0, 1.0);
    factors.push_back(1 / ((1 - smooth) / factor + smooth));
  }
  return factors;
}

[[noreturn]] void bad(const io::GgufFile& file, const std::string& key, const std::string& expected,
                      const std::string& found, const std::string& advice = "") {
  io::fail_input("bad value of " + key, file.path(), -1, expected, found, advice);
}

template <class T>
T required(const io::GgufFile& file, const std::string& key) {
  const std::optional<T> value = value_of<T>(file, key);
  if (!value) bad(file, key, "a value", "none", "the file is not complete");
  return *value;
}

// rope_scaling of the tensor rope_freqs.weight, which holds the result of llama3's scaling and not its parameters:
// those of the published models are tried.
ordered_json llama3_scaling(const io::GgufFile& file, const io::GgufTensor& tensor, double base, int64_t head_dim,
                            int64_t original) {
  const std::vector<double> found = file.load(tensor).to(DType::f32).to_vector<double>();
  const double factor = found.empty() ? 0 : *std::ranges::max_element(found);
  const auto expected = llama3_factors(base, head_dim, factor, 1, 4, static_cast<double>(original));
  bool equal = factor >= 1 && found.size() == expected.size();
  for (size_t i = 0; equal && i < found.size(); ++i) equal = std::fabs(found[i] / expected[i] - 1) < 1e-4;
  if (!equal)
    bad(file, tensor.name, str("the factors of llama3's scaling of ", original, " positions, between 1 and 4 turns"),
        "others", "Braid has no rotary factors of other kinds");
  return {{"rope_type", "llama3"},
          {"factor", std::round(factor * 1e4) / 1e4},
          {"low_freq_factor", 1.0},
          {"high_freq_factor", 4.0},
          {"original_max_position_embeddings", original}};
}

}  // namespace

template <class T>
std::optional<T> value_of(const io::GgufFile& file, const std::string& key) {
  const auto at = file.metadata().find(key);
  if (at == file.metadata().end()) return {};
  if (const T* value = std::get_if<T>(&at->second)) return *value;
  if constexpr (std::is_same_v<T, double>)
    if (const auto* integer = std::get_if<int64_t>(&at->second)) return static_cast<double>(*integer);
  static const char* const kinds[] = {"an integer",          "a number",           "a flag", "a string", "integers",
                                      "an array of numbers", "an array of strings"};
  bad(file, key, kinds[io::GgufValue(T()).index()], kinds[at->second.index()]);
}
template std::optional<int64_t> value_of(const io::GgufFile&, const std::string&);
template std::optional<double> value_of(const io::GgufFile&, const std::string&);
template std::optional<bool> value_of(const io::GgufFile&, const std::string&);
template std::optional<std::string> value_of(const io::GgufFile&, const std::string&);
template std::optional<std::vector<int64_t>> value_of(const io::GgufFile&, const std::string&);
template std::optional<std::vector<double>> value_of(const io::GgufFile&, const std::string&);
template std::optional<std::vector<std::string>> value_of(const io::GgufFile&, const std::string&);

const Architecture& architecture_of(const io::GgufFile& file) {
  if (const auto parts = value_of<int64_t>(file, "split.count"); parts.value_or(1) > 1)
    bad(file, "split.count", "1, a complete model", std::to_string(*parts),
        "join the files (llama-gguf-split --merge)");
  const std::string name = required<std::string>(file, "general.architecture");
  for (const Architecture& a : kArchitectures)
    if (a.name == name) return a;
  bad(file, "general.architecture", "llama, qwen2, qwen3, olmo2, gemma2 or gemma3", detail::preview(name),
      "Braid has no reader for others; convert the model's own folder instead");
}

const Architecture* architecture_of(const std::string& model_type) {
  const auto* at = std::ranges::find(kArchitectures, model_type, &Architecture::model_type);
  return at == std::end(kArchitectures) ? nullptr : at;
}

std::optional<std::string> folder_name(const std::string& name, const Architecture& a) {
  return translated(name, a, &Names::file, &Names::folder, kFileLayers, kFolderLayers);
}
std::optional<std::string> file_name(const std::string& name, const Architecture& a) {
  return translated(name, a, &Names::folder, &Names::file, kFolderLayers, kFileLayers);
}

bool is_rotated(const std::string& name, bool& kv) {
  kv = name.find(".attn_k.") != std::string::npos;
  return kv || name.find(".attn_q.") != std::string::npos;
}

namespace {

// What Gemma has beside LLaMA, where the file does not say it with the values of llama.cpp.
void read_gemma(const io::GgufFile& file, const Architecture& a, ordered_json& config) {
  const auto number = [&](const std::string& name, double absent) {
    return value_of<double>(file, a.name + "." + name).value_or(absent);
  };
  const auto positive = [](double x) { return x > 0 ? json(x) : json(); };
  const bool second = a.local_period == 2;
  const int64_t layers = config["num_hidden_layers"];
  if (layers < 1 || layers > std::ssize(file.tensors()))
    bad(file, a.name + ".block_count", str("1 to ", file.tensors().size(), ", the count of tensors"),
        std::to_string(layers));
  config.erase("hidden_act");
  config["hidden_activation"] = "gelu_pytorch_tanh";
  config["query_pre_attn_scalar"] =
      score_dim(a, layers, config["hidden_size"], config["num_attention_heads"], config["head_dim"]);
  config["final_logit_softcapping"] = positive(number("final_logit_softcapping", second ? 30 : 0));
  const double local_base = number("rope.freq_base_swa", second ? config["rope_theta"].get<double>() : 10000);
  if (second) {
    config["attn_logit_softcapping"] = positive(number("attn_logit_softcapping", 50));
    if (local_base != config["rope_theta"])
      bad(file, a.name + ".rope.freq_base_swa", config["rope_theta"].dump(), detail::shortest(local_base),
          "Gemma 2 has one base in Braid");
  } else {
    config["rope_local_base_freq"] = local_base;
  }

  const std::string pattern = a.name + ".attention.sliding_window_pattern";
  const auto window = value_of<int64_t>(file, a.name + ".attention.sliding_window").value_or(second ? 4096 : 0);
  const auto value = file.metadata().find(pattern);
  const bool listed = value != file.metadata().end() && std::holds_alternative<std::vector<int64_t>>(value->second);
  const auto local = listed ? *value_of<std::vector<int64_t>>(file, pattern) : std::vector<int64_t>();
  const int64_t period = listed ? 1 : value_of<int64_t>(file, pattern).value_or(a.local_period);
  if (period < 1 || (listed && std::ssize(local) != layers))
    bad(file, pattern, str("a period of at least 1, or a flag for each of ", layers, " layers"), "another value");
  config["sliding_window"] = window > 0 ? json(window) : json();
  for (int64_t i = 0; i < layers; ++i) {
    const bool is_local = listed ? local[static_cast<size_t>(i)] != 0 : (i + 1) % period != 0;
    config["layer_types"].push_back(is_local && window > 0 ? "sliding_attention" : "full_attention");
  }
}

}  // namespace

std::string note_on_keys(const io::GgufFile& file, const Architecture& a) {
  std::vector<std::string> unknown;
  for (const auto& [key, value] : file.metadata()) {
    if (!key.starts_with(a.name + ".")) continue;
    const std::string name = key.substr(a.name.size() + 1);
    const auto in = [&](const auto& list) { return std::ranges::count(list, name, &Names::file) > 0; };
    if (std::ranges::count(kOthers, name) == 0 && !in(kKeys) && !in(kAbsent)) unknown.push_back(detail::preview(key));
  }
  if (unknown.empty()) return "";
  return "keys of " + file.path() + " without effect here: " + detail::preview(detail::join(unknown, ", "), 200);
}

ordered_json read_config(const io::GgufFile& file, const Architecture& a) {
  const auto key = [&](const std::string& name) { return a.name + "." + name; };
  const auto integer = [&](const std::string& name) { return value_of<int64_t>(file, key(name)); };
  const io::GgufTensor* table = file.find("token_embd.weight");
  if (!table || table->shape.rank() != 2) bad(file, "token_embd.weight", "a matrix", table ? "another shape" : "none");
  ordered_json config = {
      {"architectures", {a.class_name}}, {"model_type", a.model_type}, {"vocab_size", table->shape[0]}};
  for (const Names& row : kKeys) config[row.folder] = required<int64_t>(file, key(row.file));
  const int64_t heads = config["num_attention_heads"], width = config["hidden_size"];
  if (heads < 1 || width < 1) bad(file, key("attention.head_count"), "sizes of at least 1", "less");
  const int64_t head_dim = integer("attention.key_length").value_or(width / heads);
  config["num_key_value_heads"] = integer("attention.head_count_kv").value_or(heads);
  config["head_dim"] = head_dim;
  for (const char* same : {"attention.value_length", "rope.dimension_count"})
    if (const auto n = integer(same); n && *n != head_dim)
      bad(file, key(same), str("the width of a head, ", head_dim), std::to_string(*n), "Braid rotates complete heads");
  const bool gemma = a.local_period > 0;
  for (const auto& [name, neutral] : kAbsent)
    if (const auto x = value_of<double>(file, key(name)); x && detail::shortest(*x) != neutral && *x != 0)
      if (!gemma || name.find("softcapping") == std::string::npos)
        bad(file, key(name), neutral + ", or no such key", detail::shortest(*x),
            "Braid computes no such models of this architecture");
  if (!value_of<bool>(file, key("attention.causal")).value_or(true))
    bad(file, key("attention.causal"), "true, or no such key", "false", "only decoders are supported");
  if (const auto window = integer("attention.sliding_window");
      !gemma && window.value_or(0) > 0 && *window < config["max_position_embeddings"])
    bad(file, key("attention.sliding_window"),
        str("none below the ", config["max_position_embeddings"].dump(), " positions"), std::to_string(*window),
        "Braid reads windows of Gemma alone");
  config["hidden_act"] = "silu";
  config["rms_norm_eps"] = required<double>(file, key("attention.layer_norm_rms_epsilon"));
  const double base = value_of<double>(file, key("rope.freq_base")).value_or(10000);
  config["rope_theta"] = base;
  config["rope_scaling"] = nullptr;
  const double factor = value_of<double>(file, key("rope.scaling.factor")).value_or(0);  // 0: none
  const std::string scaling =  // linear is llama.cpp's type where there is none
      value_of<std::string>(file, key("rope.scaling.type")).value_or("linear");
  if (scaling != "linear" && scaling != "none")
    bad(file, key("rope.scaling.type"), "none or linear", detail::preview(scaling));
  if (scaling == "linear" && factor != 0 && factor != 1) {
    if (!(factor > 0) || !std::isfinite(factor))
      bad(file, key("rope.scaling.factor"), "a finite number of at least 0", detail::shortest(factor));
    config["rope_scaling"] = {{"type", "linear"}, {"factor", factor}};
  }
  if (const io::GgufTensor* factors = file.find("rope_freqs.weight"))
    config["rope_scaling"] =
        llama3_scaling(file, *factors, base, head_dim, integer("rope.scaling.original_context_length").value_or(8192));
  config["tie_word_embeddings"] = file.find("output.weight") == nullptr;
  if (a.bias_key) config["attention_bias"] = file.find("blk.0.attn_q.bias") != nullptr;
  if (gemma) read_gemma(file, a, config);
  if (a.model_type == "llama") config["mlp_bias"] = file.find("blk.0.ffn_up.bias") != nullptr;
  for (const char* token : {"bos", "eos"}) {
    const auto id = value_of<int64_t>(file, str("tokenizer.ggml.", token, "_token_id"));
    config[str(token, "_token_id")] = id ? json(*id) : json();
  }
  return config;
}

WrittenConfig write_config(const json& config, const Architecture& a) {
  WrittenConfig written;
  const auto put = [&](const std::string& name, io::GgufValue value) {
    written.metadata.emplace_back(a.name + "." + name, std::move(value));
  };
  const auto cannot = [&](const std::string& key, const json& value) {
    fail(ErrorKind::setting, "a GGUF file of architecture " + a.name + " cannot say " + key + " = " +
                                 detail::preview(value.dump()) + ": llama.cpp would compute another model");
  };
  written.metadata.emplace_back("general.architecture", a.name);
  written.metadata.emplace_back("general.alignment", int64_t{32});
  std::set<std::string> known = {"architectures",     "model_type",          "vocab_size",     "num_key_value_heads",
                                 "head_dim",          "rms_norm_eps",        "rope_theta",     "rope_scaling",
                                 "hidden_act",        "tie_word_embeddings", "torch_dtype",    "dtype",
                                 "bos_token_id",      "eos_token_id",        "attention_bias", "mlp_bias",
                                 "initializer_range", "use_cache",           "pad_token_id",   "transformers_version",
                                 "layer_types",       "max_window_layers"};
  for (const Names& row : kKeys) {
    known.insert(row.folder);
    put(row.file, config.at(row.folder).get<int64_t>());
  }
  const bool gemma = a.local_period > 0;
  if (gemma)
    known.insert({"sliding_window", "window_type", "hidden_activation", "query_pre_attn_scalar",
                  "attn_logit_softcapping", "final_logit_softcapping", "rope_local_base_freq"});
  for (const auto& [key, value] : config.items())
    if (!known.contains(key) && !value.is_null() && value != false) cannot(key, value);
  const auto only = [&](const char* key, const json& value) {
    if (config.contains(key) && config.at(key) != value) cannot(key, config.at(key));
  };
  only(gemma ? "hidden_activation" : "hidden_act", gemma ? "gelu_pytorch_tanh" : "silu");
  if (a.norms_behind) only("attention_bias", false);
  const auto integer = [&](const char* key, int64_t absent) {
    return config.contains(key) && !config.at(key).is_null() ? config.at(key).get<int64_t>() : absent;
  };
  const int64_t heads = config.at("num_attention_heads");
  const int64_t head_dim = integer("head_dim", config.at("hidden_size").get<int64_t>() / heads);
  put("attention.head_count_kv", integer("num_key_value_heads", heads));
  put("attention.layer_norm_rms_epsilon", config.at("rms_norm_eps").get<double>());
  for (const char* width : {"attention.key_length", "attention.value_length", "rope.dimension_count"})
    put(width, head_dim);
  const double base = config.at("rope_theta");
  put("rope.freq_base", base);
  const int64_t layers = config.at("num_hidden_layers");
  json types = json::array();
  for (int64_t i = 0; i < layers; ++i)
    types.push_back(gemma && (i + 1) % a.local_period != 0 ? "sliding_attention" : "full_attention");
  only("layer_types", types);
  if (gemma) {
    only("query_pre_attn_scalar", score_dim(a, layers, config.at("hidden_size"), heads, head_dim));
    only("rope_local_base_freq", 10000.0);
    if (a.local_period == 2) only("tie_word_embeddings", true);
    put("attention.sliding_window", config.at("sliding_window").get<int64_t>());
    for (const char* cap : {"attn_logit_softcapping", "final_logit_softcapping"})
      if (config.contains(cap)) put(cap, config.at(cap).is_null() ? 0.0 : config.at(cap).get<double>());
  }
  put("vocab_size", config.at("vocab_size").get<int64_t>());
  const json scaling = config.value("rope_scaling", json());
  if (scaling.is_null()) return written;
  const std::string type = scaling.value("rope_type", scaling.value("type", ""));
  if (type == "linear") {
    put("rope.scaling.type", std::string("linear"));
    put("rope.scaling.factor", scaling.at("factor").get<double>());
  } else if (type == "llama3" && !a.norms_behind && scaling.at("low_freq_factor") == 1.0 &&
             scaling.at("high_freq_factor") == 4.0) {
    const int64_t original = scaling.at("original_max_position_embeddings");
    put("rope.scaling.original_context_length", original);
    written.rotary_factors = llama3_factors(base, head_dim, scaling.at("factor"), 1, 4, static_cast<double>(original));
  } else {
    cannot("rope_scaling", scaling);
  }
  return written;
}

}  // namespace braid::models::gguf
