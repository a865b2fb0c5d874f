#include "braid/models/folders/gguf/architecture.h"

#include <algorithm>
#include <cmath>
#include <map>
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
constexpr std::string_view kFileLayers = "blk.", kFolderLayers = "model.layers.";

// Keys behind "llama." with an integer or number, and their keys in config.json.
const Names kKeys[] = {{"context_length", "max_position_embeddings"},
                       {"embedding_length", "hidden_size"},
                       {"block_count", "num_hidden_layers"},
                       {"feed_forward_length", "intermediate_size"},
                       {"attention.head_count", "num_attention_heads"}};

std::optional<std::string> translated(const std::string& name, std::string Names::*from, std::string Names::*to,
                                      std::string_view layers_from, std::string_view layers_to) {
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
  for (const Names& row : in_layer ? std::span<const Names>(kLayerModules) : std::span<const Names>(kModules))
    if (row.*from == module) return prefix + row.*to + kind;
  return {};
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
  const std::string name = required<std::string>(file, "general.architecture");
  for (const Architecture& a : kArchitectures)
    if (a.name == name) return a;
  bad(file, "general.architecture", "llama, qwen2 or qwen3", detail::preview(name),
      "Braid has no reader for others; convert the model's own folder instead");
}

const Architecture* architecture_of(const std::string& model_type) {
  const auto* at = std::ranges::find(kArchitectures, model_type, &Architecture::model_type);
  return at == std::end(kArchitectures) ? nullptr : at;
}

std::optional<std::string> folder_name(const std::string& name) {
  return translated(name, &Names::file, &Names::folder, kFileLayers, kFolderLayers);
}
std::optional<std::string> file_name(const std::string& name) {
  return translated(name, &Names::folder, &Names::file, kFolderLayers, kFileLayers);
}

bool is_rotated(const std::string& name, bool& kv) {
  kv = name.find(".attn_k.") != std::string::npos;
  return kv || name.find(".attn_q.") != std::string::npos;
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
  if (const auto experts = integer("expert_count"); experts.value_or(0) > 0)
    bad(file, key("expert_count"), "0", std::to_string(*experts), "Braid has no mixture of experts");
  config["hidden_act"] = "silu";
  config["rms_norm_eps"] = required<double>(file, key("attention.layer_norm_rms_epsilon"));
  const double base = value_of<double>(file, key("rope.freq_base")).value_or(10000);
  config["rope_theta"] = base;
  config["rope_scaling"] = nullptr;
  const std::string scaling = value_of<std::string>(file, key("rope.scaling.type")).value_or("none");
  if (scaling == "linear")
    config["rope_scaling"] = {{"type", "linear"}, {"factor", required<double>(file, key("rope.scaling.factor"))}};
  else if (scaling != "none")
    bad(file, key("rope.scaling.type"), "none or linear", detail::preview(scaling));
  if (const io::GgufTensor* factors = file.find("rope_freqs.weight"))
    config["rope_scaling"] =
        llama3_scaling(file, *factors, base, head_dim, integer("rope.scaling.original_context_length").value_or(8192));
  config["tie_word_embeddings"] = file.find("output.weight") == nullptr;
  if (a.bias_key) config["attention_bias"] = file.find("blk.0.attn_q.bias") != nullptr;
  if (a.model_type == "llama") config["mlp_bias"] = file.find("blk.0.ffn_up.bias") != nullptr;
  for (const char* token : {"bos", "eos"})
    if (const auto id = value_of<int64_t>(file, str("tokenizer.ggml.", token, "_token_id")))
      config[str(token, "_token_id")] = *id;
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
  for (const auto& [key, value] : config.items())
    if (!known.contains(key) && !value.is_null() && value != false) cannot(key, value);
  for (const json& layer : config.value("layer_types", json::array()))
    if (layer != "full_attention") cannot("layer_types", config.at("layer_types"));
  if (config.value("hidden_act", "silu") != "silu") cannot("hidden_act", config.at("hidden_act"));
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
  put("vocab_size", config.at("vocab_size").get<int64_t>());
  const json scaling = config.value("rope_scaling", json());
  if (scaling.is_null()) return written;
  const std::string type = scaling.value("rope_type", scaling.value("type", ""));
  if (type == "linear") {
    put("rope.scaling.type", std::string("linear"));
    put("rope.scaling.factor", scaling.at("factor").get<double>());
  } else if (type == "llama3" && scaling.at("low_freq_factor") == 1.0 && scaling.at("high_freq_factor") == 4.0) {
    const int64_t original = scaling.at("original_max_position_embeddings");
    put("rope.scaling.original_context_length", original);
    written.rotary_factors = llama3_factors(base, head_dim, scaling.at("factor"), 1, 4, static_cast<double>(original));
  } else {
    cannot("rope_scaling", scaling);
  }
  return written;
}

}  // namespace braid::models::gguf
