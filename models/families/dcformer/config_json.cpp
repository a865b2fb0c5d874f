// config.json, read and written through the key table.
#include <algorithm>
#include <functional>
#include <set>

#include "braid/models/families/config_file.h"
#include "braid/models/families/dcformer/config.h"
#include "braid/models/families/dcformer/config_keys.h"
#include "braid/models/families/dcformer/huggingface/config.h"
#include "braid/models/families/dcformer/model_types.h"
#include "braid/models/folders/merge_json.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/json.h"

namespace braid::models {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// Keys of published folders that say how their own code runs, not what the model is.
const std::vector<std::string> irrelevant = detail::split(
    "architectures auto_map dtype transformers_version _name_or_path _commit_hash use_cache pad_token_id is_training "
    "q_chunk_size query_chunk_size prefill_pad return_dict use_gradient_checkpointing query_wise n_local_heads "
    "output_attentions output_hidden_states _attn_implementation_autoset",
    ' ');
// Described by every reader of its own.
const std::vector<std::string> irrelevant_in_profile = {"kind"};

// Every key of the object must be one of `known` or `ignored`.
void reject_unknown(const json& object, const std::string& prefix, const std::vector<std::string>& ignored,
                    const std::string& file) {
  std::vector<std::string> known = config_keys();
  for (const std::string& name : ignored) known.push_back(prefix + name);
  if (prefix.empty()) known.push_back("profile");
  for (const auto& [name, value] : object.items()) {
    const std::string full = prefix + name;
    const bool ok = std::find(known.begin(), known.end(), full) != known.end() &&
                    (full == "profile" || !full.starts_with("profile.") || !prefix.empty());
    check(ok, ErrorKind::input, [&] {
      return "unknown key '" + detail::preview(full) + "' in " + file + detail::did_you_mean(full, known) +
             " (a key that Braid does not know could change what the model computes)";
    });
  }
}

// Folders of the authors' MUDD code: what it fixes, and other words for keys.
void read_mudd(const json& object, DcformerConfig& config, const std::string& file) {
  const auto need = [&](const char* key, const json& expected) {
    const json* value = find_value(object, key);
    if (value && *value != expected) bad_config(str("bad value for ", key), file, expected.dump(), shown(*value));
  };
  for (const char* key : {"dense", "dynamic_dense", "sepln"}) need(key, true);
  need("dense_type", "qkvr");
  need("stack_hidden", false);
  if (const json* kv_heads = find_value(object, "n_local_heads"); kv_heads && *kv_heads != -1)
    read_setting(*find_setting(key_table(config), "n_kv_head"), "n_local_heads", *kv_heads, file);
}

// Settings that the published code obeys and this one does not.
void reject_unsupported(const json& object, const DcformerConfig& config, const std::string& file) {
  const auto is_false = [&](const char* key, const char* advice) {
    const json* value = find_key(object, key);
    if (value && !value->is_null() && *value != false)
      bad_config(str("bad value for ", key), file, "false", shown(*value), advice);
  };
  is_false("query_wise", "its published meaning differs between prefill and decode; use profile.key_side=false");
  const json* kv_heads = find_key(object, "n_local_heads");
  const int64_t expected = config.n_kv_head == 0 ? config.n_head : config.n_kv_head;
  if (kv_heads && !kv_heads->is_null() && *kv_heads != -1 && *kv_heads != expected)
    bad_config("bad value for n_local_heads", file, str(config.n_kv_head == 0 ? "n_head = " : "n_kv_head = ", expected),
               shown(*kv_heads),
               "the published code has no grouped key/value heads; Braid's key for them is n_kv_head");
}

// A key that is absent has the value of the published classes. Folders with keys of the later code (mgate, prefill_pad)
// are read as profile H-inf, except that the copies dw_m, qkw_m count where they differ: training updates nothing else.
DcformerConfig published_defaults(const std::string& model_type, const json& object) {
  const bool later = object.contains("prefill_pad") || object.contains("mgate");
  DcformerConfig config;
  set_family(config, model_type);
  config.use_qk_norm = false;
  config.rope_base = later ? 500000 : 10000;
  set_profile(config, later ? "H-inf" : "T1");
  config.profile.merged_weights = later;
  const std::vector<Setting> table = key_table(config);
  for (const auto& [key, text] : model_type_named(model_type).absent) set_key(table, key, text);
  return config;
}

// The settings that `compose` stands for say the same to older readers. These expect the newer ones only where they
// differ from plain attention, or from what a folder of the type has without the key.
std::function<bool(const Setting&)> is_written(const std::string& model_type) {
  static const DcformerConfig defaults;
  static const std::set<std::string> newer = {
      "attention",      "attention_layers",      "compose_layers",   "profile.gates",   "qkv_bias",
      "residual",       "expand_last",           "round64",          "dynamic_mlp_dim", "rope_beta_fast",
      "rope_beta_slow", "rope_attention_factor", "norm_place",       "norm_offset",     "qk_norm_all_heads",
      "score_dim",      "attention_softcap",     "scale_embeddings", "rope_local_base", "logit_softcap",
      "mup_base_width"};
  return [absent = published_defaults(model_type, json::object())](const Setting& key) {
    if (!newer.contains(key.name)) return key.name != "compose";
    const std::string value = value_text(key.get());
    return value != get_key(defaults, key.name) || value != get_key(absent, key.name);
  };
}

void read_keys(const json& object, DcformerConfig& config, const std::string& file) {
  const json* profile = find_key(object, "profile");
  if (profile && !profile->is_object()) bad_config("bad value for profile", file, "an object", shown(*profile));
  const bool mudd = model_type_named(config.model_type).mudd_folders;
  std::vector<std::string> ignored = irrelevant;
  for (const char* key : {"dense", "dynamic_dense", "sepln", "dense_type", "stack_hidden", "use_layer_cache"})
    if (mudd) ignored.emplace_back(key);
  reject_unknown(object, "", ignored, file);
  if (mudd) read_mudd(object, config, file);
  if (profile) reject_unknown(*profile, "profile.", irrelevant_in_profile, file);
  const std::vector<Setting> table = key_table(config);
  const auto read = [&](const Setting& key) {
    const json* value = find_value(object, key.name);
    if (!value && key.name == "torch_dtype") value = find_key(object, "dtype");  // its newer name
    if (value) read_setting(key, key.name, *value, file);
  };
  // The names of a profile and of parts of DCMHA set keys that others may change.
  for (const char* name : {"profile.name", "compose"}) read(*find_setting(table, name));
  for (const Setting& key : table)
    if (key.name != "profile.name" && key.name != "compose" && key.name != "model_type") read(key);
  if (mudd && !(profile && profile->contains("qk_norm_eps"))) config.profile.qk_norm_eps = config.norm_eps;
  reject_unsupported(object, config, file);
  // The published code computes the rank as M / (N / 2): 2 for every N but these.
  const bool ranked = profile && profile->contains("rank");
  if (config.use_dcmha && !ranked && (config.n_head == 1 || config.n_head == 3))
    bad_config("bad value for n_head", file, "2, or more than 3 heads without profile.rank",
               std::to_string(config.n_head),
               config.n_head == 1 ? "the published rank is undefined for one head; set profile.rank"
                                  : "the published rank for 3 heads is 3 and its training uses 2; set profile.rank");
}

}  // namespace

DcformerConfig read_config(const std::string& text, const std::string& file) {
  const json object = parse_config(text, file);
  const json& type = required_key(object, "model_type", file);
  if (const Dialect* dialect = type.is_string() ? find_dialect(type.get<std::string>()) : nullptr)
    return read_dialect_config(*dialect, object, file);
  DcformerConfig unused;
  const Setting family = key_table(unused).front();
  check(type != "attention", ErrorKind::input, [&] {
    return bad_value("model_type in " + file, family.rule, "\"attention\"") +
           "; this folder holds inputs of one attention, not a model (see braid dump)";
  });
  read_setting(family, family.name, type, file);
  for (const char* name : {"vocab_size", "dim", "n_layer", "n_head"}) required_key(object, name, file);
  DcformerConfig config = published_defaults(unused.model_type, object);
  read_keys(object, config, file);
  check_read(file, [&] { resolve(config); });
  return config;
}

bool is_attention_case(const std::string& text, const std::string& file) {
  const json object = parse_config(text, file);
  const json* type = find_key(object, "model_type");
  return type && *type == "attention";
}

AttentionCase read_attention_case(const std::string& text, const std::string& file) {
  json object = parse_config(text, file);
  if (required_key(object, "model_type", file) != "attention")
    bad_config("bad value for model_type", file, "attention", shown(object["model_type"]));
  required_key(object, "n_head", file);
  required_key(object, "head_dim", file);
  json& profile = object["profile"];
  AttentionCase result;
  // Sizes of the inputs: bounded so that their products can be formed.
  const auto take = [&](const char* name, int64_t least, int64_t& size) {
    const json& value = required_key(profile, name, file);
    const bool ok = value.is_number_integer() && (!value.is_number_unsigned() || value < (uint64_t{1} << 31)) &&
                    value >= least && value < (int64_t{1} << 31);
    if (!ok) bad_config(str("bad value for profile.", name), file, str("an integer of at least ", least), shown(value));
    size = value.get<int64_t>();
    profile.erase(name);
  };
  if (!profile.is_object()) bad_config("bad value for profile", file, "an object", shown(profile));
  take("batch", 1, result.batch);
  take("q_len", 1, result.q_len);
  take("kv_len", 1, result.kv_len);
  take("q_offset", 0, result.q_offset);

  DcformerConfig config = published_defaults("dcformer", object);
  config.vocab_size = config.n_layer = config.dim = 1;
  read_keys(object, config, file);
  config.dim = config.n_head * config.head_dim;
  check_read(file, [&] { resolve(config); });
  result.config = config;
  return result;
}

std::string rewrite_config(const std::string& text, const std::string& file, const DcformerConfig& config) {
  if (const Dialect* dialect = find_dialect(config.model_type))
    return rewrite_dialect_config(*dialect, text, file, config, {});
  const DcformerConfig was = read_config(text, file);
  if (was == config) return text;
  ordered_json object = io::parse_ordered_json(text, file), before, after;
  const ordered_json profile = add_values(before, KeysOfCopy(was).list(), is_written(was.model_type));
  const ordered_json new_profile = add_values(after, KeysOfCopy(config).list(), is_written(config.model_type));
  merge_json(object, before, after);
  if (profile != new_profile) merge_json(object["profile"], profile, new_profile);
  if (object.contains("n_local_heads") && was.n_kv_head != config.n_kv_head) object["n_local_heads"] = config.n_kv_head;
  const std::string changed = object.dump(2) + "\n";
  return read_config(changed, file) == config ? changed : write_config(config);
}

std::string write_config(const DcformerConfig& config) {
  if (const Dialect* dialect = find_dialect(config.model_type)) return write_dialect_config(*dialect, config);
  ordered_json object;
  object["architectures"] = {model_type_named(config.model_type).architecture};
  const ordered_json profile = add_values(object, KeysOfCopy(config).list(), is_written(config.model_type));
  object["n_local_heads"] = config.n_kv_head;
  object["profile"] = profile;
  return object.dump(2) + "\n";
}

}  // namespace braid::models
