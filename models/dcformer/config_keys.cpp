#include "braid/models/dcformer/config_keys.h"

#include <algorithm>
#include <type_traits>

#include "braid/tensor/detail/strings.h"

namespace braid::models {
namespace {

// Bounds keep every product of sizes (parameters of a layer, of all layers) far below 2^63.
constexpr double kMaxWidth = 1 << 20, kMaxHidden = 1 << 24, kMaxLayers = 1 << 14, kMaxHeads = 1 << 14;
constexpr double kMaxVocab = 1 << 28, kMaxPositions = 1 << 30;
constexpr double kTiny = 1e-300, kHuge = 1e300;  // "positive and finite"

// The member itself, in the configuration or in its profile.
template <auto member>
auto& at(auto& config) {
  if constexpr (std::is_invocable_v<decltype(member), const ModelConfig&>)
    return config.*member;
  else
    return config.profile.*member;
}

template <class T>
std::string get_text(const ConfigKey& key, const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return key.choices.at(static_cast<size_t>(value));
  } else if constexpr (std::is_same_v<T, bool>) {
    return key.type == KeyType::word ? key.choices.at(value) : value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return std::to_string(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return shortest(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    return join(value, ",");
  } else {
    std::vector<std::string> items;
    for (int64_t window : value) items.push_back(window == 0 ? "null" : std::to_string(window));
    return join(items, ",");
  }
}

template <class T>
void put_text(const ConfigKey& key, T& value, const std::string& text) {
  [[maybe_unused]] const auto choice = [&] {
    return std::find(key.choices.begin(), key.choices.end(), text) - key.choices.begin();
  };
  if constexpr (std::is_enum_v<T>) {
    value = static_cast<T>(choice());
  } else if constexpr (std::is_same_v<T, bool>) {
    value = key.type == KeyType::word ? choice() == 1 : text == "true";
  } else if constexpr (std::is_same_v<T, int64_t>) {
    value = *parse_int(text);
  } else if constexpr (std::is_same_v<T, double>) {
    value = *parse_float(text);
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = text;
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    value = list_items(text);
  } else {
    value.clear();
    for (const std::string& item : list_items(text)) value.push_back(item == "null" ? 0 : *parse_int(item));
  }
}

struct Extra {
  double min = 0, max = 0;
  std::vector<std::string> choices = {};
  const char* null_text = nullptr;
};

template <auto member>
ConfigKey key(std::string name, std::string help, Extra extra = {}) {
  using T = std::remove_cvref_t<decltype(at<member>(std::declval<ModelConfig&>()))>;
  KeyType type = KeyType::word;
  if (std::is_same_v<T, bool> && extra.choices.empty()) type = KeyType::boolean;
  if (std::is_same_v<T, int64_t>) type = KeyType::whole;
  if (std::is_same_v<T, double>) type = KeyType::number;
  if (std::is_same_v<T, std::vector<std::string>>) type = KeyType::words;
  if (std::is_same_v<T, std::vector<int64_t>>) type = KeyType::windows;
  return {.name = std::move(name),
          .help = std::move(help),
          .type = type,
          .get = [](const ConfigKey& k, const ModelConfig& c) { return get_text(k, at<member>(c)); },
          .set = [](const ConfigKey& k, ModelConfig& c, const std::string& text) { put_text(k, at<member>(c), text); },
          .min = extra.min,
          .max = extra.max,
          .choices = std::move(extra.choices),
          .null_text = extra.null_text ? extra.null_text : "",
          .nullable = extra.null_text != nullptr};
}

ConfigKey profile_key() {
  std::vector<std::string> choices = profile_names();
  choices.push_back("custom");
  return {.name = "profile.name",
          .help = "program of the authors whose arithmetic is followed",
          .type = KeyType::word,
          .get = [](const ConfigKey&, const ModelConfig& c) { return profile_name(c); },
          .set = [](const ConfigKey&, ModelConfig& c, const std::string& text) { set_profile(c, text); },
          .choices = std::move(choices)};
}

std::vector<ConfigKey> make_table() {
  using C = ModelConfig;
  using P = Profile;
  const std::vector<std::string> window_keys = {"W", "W+1"};
  return {
      key<&C::model_type>("model_type", "published family", {.choices = {"dcformer", "dcpythia"}}),
      key<&C::vocab_size>("vocab_size", "tokens V", {1, kMaxVocab}),
      key<&C::dim>("dim", "model width D", {1, kMaxWidth}),
      key<&C::n_layer>("n_layer", "blocks L", {1, kMaxLayers}),
      key<&C::n_head>("n_head", "attention heads N", {1, kMaxHeads}),
      key<&C::head_dim>("head_dim", "width d of a head, null = dim / n_head", {1, 65536, {}, "0"}),
      key<&C::intermediate_size>("intermediate_size", "hidden width F of the FFN, null = the family's rule",
                                 {1, kMaxHidden, {}, "0"}),
      key<&C::block_size>("block_size", "longest sequence", {1, kMaxPositions}),
      key<&C::norm>("norm", "normalisation of blocks and of the end", {.choices = {"rms", "layer"}}),
      key<&C::ffn>("ffn", "feed-forward kind", {.choices = {"swiglu", "gelu"}}),
      key<&C::norm_eps>("norm_eps", "epsilon of these norms", {kTiny, 1}),
      key<&C::rope_base>("rope_base", "base of the rotary frequencies", {1, kHuge}),
      key<&C::rotary_pct>("rotary_pct", "part of a head that is rotated", {kTiny, 1}),
      key<&C::use_qk_norm>("use_qk_norm", "RMSNorm of queries and keys"),
      key<&C::use_dcmha>("use_dcmha", "dynamic composition of heads; false = plain attention"),
      key<&C::use_linear_bias>("use_linear_bias", "biases in attention and FFN"),
      key<&C::use_parallel_residual>("use_parallel_residual", "attention and FFN side by side"),
      key<&C::mgate>("mgate", "softmax gate over blocks of the SwiGLU FFN"),
      key<&C::mgate_dim>("mgate_dim", "number of these blocks E", {1, kMaxHidden}),
      key<&C::window_size>("window_size", "keys W of a query of a local layer, null = no local layers",
                           {1, kMaxPositions, {}, "0"}),
      key<&C::window_type>("window_type", "pattern of local (L) and global (G) layers, null = LG",
                           {.choices = {"LG", "LGLL", "LGL6", "G"}, .null_text = ""}),
      key<&C::bos_token_id>("bos_token_id", "token that begins a text", {0, kMaxVocab, {}, "-1"}),
      key<&C::eos_token_id>("eos_token_id", "token that ends a text", {0, kMaxVocab, {}, "-1"}),
      key<&C::torch_dtype>("torch_dtype", "type that the published code of the folder computes in",
                           {.choices = {"float64", "float32", "float16", "bfloat16"}, .null_text = ""}),
      key<&C::init>("init", "published initialisation", {.choices = {"jax", "pytorch"}}),
      key<&C::initializer_std>("initializer_std", "std of embeddings and projections, init = jax", {0, kHuge}),
      key<&P::gelu>("profile.gelu", "GELU of the dynamic-weight generator", {.choices = {"erf", "tanh"}}),
      key<&P::qk_norm_eps>("profile.qk_norm_eps", "epsilon of the QK-norm", {0, 1}),
      key<&P::dw_norm_eps>("profile.dw_norm_eps", "epsilon of the norm of the dynamic weights", {kTiny, 1}),
      key<&P::window_plus_one>("profile.window_keys", "unmasked keys of a local layer in a full pass",
                               {.choices = window_keys}),
      key<&P::decode_window_plus_one>("profile.decode_window_keys", "the same in one-token steps",
                                      {.choices = window_keys}),
      key<&P::causal>("profile.causal", "false: no key is masked, windows are ignored"),
      key<&P::rope_table>("profile.rope_table", "rounding of the cos/sin table",
                          {.choices = {"exact", "f32", "f16", "torch_dtype"}}),
      key<&P::pre_compose>("profile.pre_compose", "compose scores before the softmax"),
      key<&P::post_compose>("profile.post_compose", "compose probabilities after it"),
      key<&P::query_side>("profile.query_side", "weights from the query token"),
      key<&P::key_side>("profile.key_side", "weights from the key token"),
      key<&P::static_proj>("profile.static_proj", "learned static mixing of heads"),
      key<&P::num_groups>("profile.num_groups", "head groups G", {1, kMaxHeads}),
      key<&P::rank>("profile.rank", "rank R of each dynamic term", {1, 64}),
      key<&P::branches>("profile.branches", "order of the branches in dw1, qkw, dd",
                        {.choices = {"pre_q", "pre_k", "post_q", "post_k"}}),
      key<&C::layer_windows>("profile.layer_windows", "window of each layer (null = global), instead of window_type",
                             {1, kMaxPositions}),
      key<&P::merged_weights>("profile.dynamic_weights", "which count where a folder's copies differ",
                              {.choices = {"dw1", "dw_m"}}),
      profile_key(),
  };
}

bool is_choice(const ConfigKey& key, const std::string& text) {
  return std::find(key.choices.begin(), key.choices.end(), text) != key.choices.end();
}

bool fits(const ConfigKey& key, const std::string& text) {
  if (key.nullable && text == key.null_text) return true;
  switch (key.type) {
    case KeyType::boolean:
      return text == "true" || text == "false";
    case KeyType::whole: {
      const auto value = parse_int(text);
      return value && static_cast<double>(*value) >= key.min && static_cast<double>(*value) <= key.max;
    }
    case KeyType::number: {
      const auto value = parse_float(text);
      return value && *value >= key.min && *value <= key.max;
    }
    case KeyType::word:
      return is_choice(key, text);
    case KeyType::words: {
      std::vector<std::string> items = list_items(text);
      for (const std::string& item : items)
        if (!is_choice(key, item)) return false;
      std::sort(items.begin(), items.end());
      return std::adjacent_find(items.begin(), items.end()) == items.end();
    }
    case KeyType::windows:
      for (const std::string& item : list_items(text)) {
        const auto value = parse_int(item);
        const bool inside = value && static_cast<double>(*value) >= key.min && static_cast<double>(*value) <= key.max;
        if (item != "null" && !inside) return false;
      }
      return true;
  }
  return false;
}

}  // namespace

const std::vector<ConfigKey>& key_table() {
  static const std::vector<ConfigKey> table = make_table();
  return table;
}

std::vector<std::string> list_items(const std::string& text) {
  std::string_view inside = trim(text);
  if (inside.starts_with("[") && inside.ends_with("]")) inside = trim(inside.substr(1, inside.size() - 2));
  if (inside.empty()) return {};
  std::vector<std::string> items = split(std::string(inside), ',');
  for (std::string& item : items) {
    std::string_view word = trim(item);
    if (word.size() >= 2 && (word.front() == '"' || word.front() == '\'') && word.back() == word.front())
      word = word.substr(1, word.size() - 2);
    item = word == "none" ? "null" : std::string(word);
  }
  return items;
}

std::string key_text(const ConfigKey& key, const ModelConfig& config) {
  const std::string text = key.get(key, config);
  return key.nullable && text == key.null_text ? "null" : text;
}

std::string expectation(const ConfigKey& key) {
  const auto range = [&] {
    if (key.max >= kHuge) return " of at least " + decimal(key.min);
    if (key.min == kTiny) return " above 0 and at most " + shortest(key.max);
    return " from " + decimal(key.min) + " to " + decimal(key.max);
  };
  std::string text;
  switch (key.type) {
    case KeyType::boolean:
      text = "true or false";
      break;
    case KeyType::whole:
      text = "a whole number" + range();
      break;
    case KeyType::number:
      text = "a number" + range();
      break;
    case KeyType::word:
      text = "one of " + join(key.choices, ", ");
      break;
    case KeyType::words:
      text = "a list of different names out of " + join(key.choices, ", ");
      break;
    case KeyType::windows:
      text = "a list of windows, each null or a whole number" + range();
      break;
  }
  return key.nullable ? text + ", or null" : text;
}

bool set_text(const ConfigKey& key, ModelConfig& config, const std::string& given) {
  std::string text(trim(given));
  if (key.nullable && (text == "null" || text == "none")) {
    text = key.null_text;
  } else if ((key.nullable && text == key.null_text) || !fits(key, text)) {
    return false;  // the number that means null inside is no value outside
  }
  if (key.name == "model_type") set_family(config, text);
  key.set(key, config, text);
  return true;
}

}  // namespace braid::models
