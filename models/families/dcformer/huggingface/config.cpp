#include "braid/models/families/dcformer/huggingface/config.h"

#include <algorithm>
#include <set>

#include "braid/models/families/config_file.h"
#include "braid/models/families/dcformer/config_keys.h"
#include "braid/models/families/dcformer/model_types.h"
#include "braid/models/folders/merge_json.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/json.h"

namespace braid::models {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// Names of activations in transformers, and the choices of the setting hidden_act; of several the first is written.
const std::vector<std::pair<std::string, std::string>> activations = {{"silu", "silu"},
                                                                      {"swish", "silu"},
                                                                      {"gelu", "gelu"},
                                                                      {"gelu_python", "gelu"},
                                                                      {"gelu_new", "gelu_tanh"},
                                                                      {"gelu_pytorch_tanh", "gelu_tanh"},
                                                                      {"gelu_fast", "gelu_tanh"},
                                                                      {"gelu_python_tanh", "gelu_tanh"},
                                                                      {"gelu_accurate", "gelu_tanh"},
                                                                      {"quick_gelu", "quick_gelu"},
                                                                      {"relu", "relu"},
                                                                      {"relu2", "relu2"},
                                                                      {"tanh", "tanh"}};

// Settings that the dialects name otherwise: rotary.cpp, the type of the weights.
const std::vector<std::string> elsewhere = detail::split(
    "model_type rope_base rotary_pct rope_scaling rope_scaling_factor rope_low_freq_factor rope_high_freq_factor "
    "rope_original_block_size rope_beta_fast rope_beta_slow rope_attention_factor torch_dtype use_linear_bias compose "
    "profile.name",
    ' ');

// Keys that are read, or that do not matter for what a model computes.
const std::set<std::string> without_note = keys_without_note(
    "rope_theta rope_scaling rope_parameters rotary_emb_base rotary_pct partial_rotary_factor layer_types "
    "sliding_window use_sliding_window max_window_layers sliding_window_pattern _sliding_window_pattern "
    "use_mrope add_cross_attention tie_encoder_decoder use_cache "
    "classifier_dropout is_causal is_decoder pretraining_tp pad_token_id pruned_heads attention_dropout hidden_dropout "
    "_attn_implementation_autoset num_key_value_heads");

bool is_null_or_false(const json* value) { return !value || value->is_null() || *value == false; }

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

void reject_other_tasks(const Dialect& d, const json& object, const std::string& file) {
  const json* given = find_key(object, "architectures");
  if (!given || given->is_null()) return;
  for (const json& item : given->is_array() ? *given : json::array({*given})) {
    const std::string name = item.is_string() ? item.get<std::string>() : "";
    bool known = lower(name) == lower(d.weights.base);
    for (const std::string& architecture : d.architectures) known = known || lower(name) == lower(architecture);
    if (!known)
      bad_config("bad value for architectures", file, detail::join(d.architectures, " or "), shown(item),
                 "models of other tasks are not supported");
  }
}

// Keys that would change what the model computes.
void reject_unsupported(const Dialect& d, const json& object, const std::string& file) {
  for (const char* key : {"is_encoder_decoder", "add_cross_attention", "tie_encoder_decoder"}) {
    const json* value = find_key(object, key);
    if (!is_null_or_false(value))
      bad_config(str("bad value for ", key), file, "false", shown(*value), "only decoders are supported");
  }
  if (const json* causal = find_key(object, "is_causal"); causal && *causal != true)
    bad_config("bad value for is_causal", file, "true", shown(*causal), "only decoders are supported");
  for (const std::string& key : d.unset) {
    const json* value = find_key(object, key);
    if (!is_null_or_false(value))
      bad_config("bad value for " + key, file, "null or false", shown(*value),
                 "such models of type " + d.model_type + " are not supported");
  }
  reject_quantized(object, file);
  reject_other_tasks(d, object, file);
}

void read_activation(const std::vector<Setting>& table, const KeyName& key, const json& value,
                     const std::string& file) {
  const std::string name = value.is_string() ? value.get<std::string>() : "";
  std::vector<std::string> names;
  for (const auto& [theirs, choice] : activations) {
    if (name == theirs) return set_key(table, key.setting, choice);
    names.push_back(theirs);
  }
  fail(ErrorKind::input, bad_value(key.key + " in " + file, one_of(names), shown(value), name));
}

void read_keys(const Dialect& d, const json& object, const std::vector<Setting>& table, const std::string& file) {
  for (const KeyName& key : d.keys) {
    const Setting& setting = *find_setting(table, key.setting);
    const json* value = find_key(object, key.key);
    // A list of tokens that end a text: the first one is the model's, the others belong to generation.
    if (value && value->is_array() && key.key.ends_with("_token_id") && !value->empty()) value = &(*value)[0];
    if (value && value->is_null() && !key.null.empty())
      set_key(table, key.setting, key.null);
    else if (!value || (value->is_null() && !setting.rule.nullable))
      set_key(table, key.setting, key.absent);
    else if (key.setting == "hidden_act")
      read_activation(table, key, *value, file);
    else
      read_setting(setting, key.key, *value, file);
  }
}

// A setting that no key of the dialect stands for. In the file it has its own name.
bool is_own(const Dialect& d, const std::string& name) {
  return std::ranges::count(elsewhere, name) == 0 && std::ranges::count(d.keys, name, &KeyName::setting) == 0;
}

void read_own_keys(const Dialect& d, const json& object, const std::vector<Setting>& table, const std::string& file) {
  check_profile(object, table, file);
  for (const Setting& setting : table) {
    const json* value = is_own(d, setting.name) ? find_value(object, setting.name) : nullptr;
    if (value) read_setting(setting, setting.name, *value, file);
  }
}

// resolve() checks these too, under the names of the settings.
void check_sizes(const Dialect& d, const DcformerConfig& c, const std::string& file) {
  if (c.head_dim == 0 && c.dim % c.n_head != 0)
    bad_config("bad value for num_attention_heads", file, str("a divisor of hidden_size = ", c.dim),
               std::to_string(c.n_head));
  if (c.n_kv_head != 0 && c.n_head % c.n_kv_head != 0)
    bad_config("bad value for num_key_value_heads", file, str("a divisor of num_attention_heads = ", c.n_head),
               std::to_string(c.n_kv_head));
  DcformerConfig sized = c;
  if (sized.head_dim == 0) sized.head_dim = c.dim / c.n_head;
  const int64_t rotary = sized.rotary_dims();
  if (rotary < 2 || rotary % 2 != 0)
    bad_config(d.partial_key.empty() ? "bad rotary head_dim" : "bad value for " + d.partial_key, file,
               "an even number of rotated dimensions, at least 2",
               str(rotary, " = int(", sized.head_dim, " x ", detail::shortest(c.rotary_pct), ")"));
}

// The family's defaults with the sizes of `c`, to find the keys of Braid that have to be written.
DcformerConfig plain(const Dialect& d, const DcformerConfig& c) {
  DcformerConfig same = c, plain;
  set_family(plain, d.model_type);
  const std::vector<Setting> from = key_table(same), into = key_table(plain);
  for (const KeyName& key : d.keys) assign(*find_setting(into, key.setting), find_setting(from, key.setting)->get());
  plain.rope_base = c.rope_base;
  plain.rotary_pct = c.rotary_pct;
  plain.rope_scaling = c.rope_scaling;
  set_windows(d, c, plain);
  resolve(plain);
  return plain;
}

ordered_json described(const Dialect& d, const DcformerConfig& config) {
  ordered_json object;
  object["architectures"] = {d.architectures[0]};
  object["model_type"] = d.model_type;
  DcformerConfig copy = config, defaults = plain(d, config);
  const std::vector<Setting> table = key_table(copy), usual = key_table(defaults);
  for (const KeyName& key : d.keys) {
    const Value value = find_setting(table, key.setting)->get();
    const auto* number = std::get_if<double>(&value);
    object[key.key] = number ? json(*number) : to_json(value);
    if (!key.null.empty() && value_text(value) == key.null) object[key.key] = nullptr;
    if (key.setting == "score_dim" && config.score_dim == 0) object[key.key] = config.head_dim;
    if (key.setting != "hidden_act") continue;
    const auto theirs =
        std::ranges::find(activations, std::get<std::string>(value), &std::pair<std::string, std::string>::second);
    object[key.key] =
        theirs->first == "gelu_new" && key.key == "hidden_activation" ? "gelu_pytorch_tanh" : theirs->first;
  }
  write_windows(d, config, object);
  write_rotary(d, config, object);
  const ordered_json profile = add_values(object, table, [&](const Setting& setting) {
    return is_own(d, setting.name) && setting.get() != find_setting(usual, setting.name)->get();
  });
  if (!profile.is_null()) object["profile"] = profile;
  return object;
}

}  // namespace

DcformerConfig read_dialect_config(const Dialect& d, const json& given, const std::string& file) {
  const json object = with_one_rotary(d, given, file);
  reject_unsupported(d, object, file);
  DcformerConfig config;
  set_family(config, d.model_type);
  const std::vector<Setting> table = key_table(config);
  read_keys(d, object, table, file);
  read_rotary(d, object, config, file);
  read_windows(d, object, config, file);
  read_own_keys(d, object, table, file);
  check_sizes(d, config, file);
  check_read(file, [&] { resolve(config); });
  if (d.one_kv_per_q && config.n_kv_head != config.n_head)
    bad_config("bad value for n_kv_head", file, str("n_head = ", config.n_head), std::to_string(config.n_kv_head),
               "folders of this type store as many keys and values as queries");
  return config;
}

std::string write_dialect_config(const Dialect& d, const DcformerConfig& config) {
  return described(d, config).dump(2) + "\n";
}

std::string rewrite_dialect_config(const Dialect& d, const std::string& text, const std::string& file,
                                   const DcformerConfig& config, std::optional<DType> stored) {
  const DcformerConfig was = read_config(text, file);
  ordered_json object = io::parse_ordered_json(text, file);
  const ordered_json* type = nullptr;
  for (const char* key : {"dtype", "torch_dtype"})
    if (object.contains(key)) type = &object[key];
  const ordered_json type_then = type ? *type : ordered_json();
  if (was == config && (!stored || type_then == torch_name(*stored))) return text;
  merge_json(object, described(d, was), described(d, config));
  object.erase("rope_parameters");
  object.erase("dtype");
  write_rotary(d, config, object);
  if (stored)
    object["torch_dtype"] = torch_name(*stored);
  else if (!type_then.is_null())
    object["torch_dtype"] = type_then;
  const std::string changed = object.dump(2) + "\n";
  return read_config(changed, file) == config ? changed : write_dialect_config(d, config);
}

std::vector<std::string> dialect_notes(const Dialect& d, const json& object, const std::string& file) {
  std::vector<std::string> notes = code_notes(object, file, d.architectures[0]);
  for (const char* key : {"attention_dropout", "hidden_dropout"}) {
    const json* value = find_key(object, key);
    if (value && value->is_number() && *value != 0)
      notes.push_back(str(key, " = ", shown(*value), " in ", file,
                          key[0] == 'a' ? ": Braid drops no probabilities of attention"
                                        : ": Braid trains without it unless model.dropout is set"));
  }
  DcformerConfig unused;
  const std::vector<Setting> table = key_table(unused);
  const auto has_effect = [&](const std::string& key) {
    return without_note.contains(key) || std::ranges::count(d.keys, key, &KeyName::key) > 0 ||
           std::ranges::count(d.unset, key) > 0 || (find_setting(table, key) && is_own(d, key));
  };
  note_unknown_keys(object, file, has_effect, notes);
  return notes;
}

// Settings that the folders store nowhere, or whose parameters they have no names for.
static void check_stored(const Dialect& d, const DcformerConfig& c) {
  DcformerConfig usual;
  set_family(usual, d.model_type);
  const auto check_usual = [&](bool stored, const char* name) {
    const std::string expected = get_key(usual, name), found = get_key(c, name);
    check(stored || found == expected, ErrorKind::setting, [&] {
      return str("bad ", name, ": expected ", expected, " in a model of type ", d.model_type,
                 ", whose folders have no place for another one, as those of type dcformer do, found ", found);
    });
  };
  check_usual(!d.partial_key.empty(), "rotary_pct");
  check_usual(false, "torch_dtype");
  check_usual(false, "residual");
  bool named = true;
  std::set<std::string> names;
  const auto add = [&](const char* norm) {
    const auto row = std::ranges::find(d.weights.layer, norm, &TensorRow::module);
    named = named && row != d.weights.layer.end() && names.insert(row->theirs[0]).second;
  };
  if (c.norm_place != nn::NormPlace::post) add("attention_norm"), add("ffn_norm");
  if (c.norm_place != nn::NormPlace::pre) add("attention_post_norm"), add("ffn_post_norm");
  check_usual(named, "norm_place");
}

void check_dialect(const Dialect& d, const DcformerConfig& c) {
  check_windows(d, c);
  check_stored(d, c);
  for (const KeyName& key : d.keys) {
    const std::string& first = std::ranges::find(d.keys, key.key, &KeyName::key)->setting;
    if (first == key.setting) continue;
    const std::string expected = get_key(c, first), found = get_key(c, key.setting);
    check(found == expected, ErrorKind::setting, [&] {
      return str("bad ", key.setting, ": expected ", first, " = ", expected, " in a model of type ", d.model_type,
                 ", whose folders store both as ", key.key, ", found ", found);
    });
  }
  check(!d.one_kv_per_q || c.n_kv_head == c.n_head, ErrorKind::setting, [&] {
    return str("bad n_kv_head: expected n_head = ", c.n_head, " in a model of type ", d.model_type,
               ", whose folders store as many keys and values as queries, found ", c.n_kv_head);
  });
  check(!d.one_kv_per_q || c.query_heads() == c.n_head, ErrorKind::setting, [&] {
    return str("bad attention: expected one query head for each head in a model of type ", d.model_type,
               ", whose folders store as many keys and values as queries, found ", detail::join(c.attention, ","));
  });
}

}  // namespace braid::models
