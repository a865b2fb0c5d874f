// config.json of ViT folders, in and out.
#include <algorithm>
#include <set>

#include "braid/models/families/dcformer/config_file.h"
#include "braid/models/families/vit/config.h"
#include "braid/tensor/base/strings.h"

namespace braid::models {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kArchitecture = "ViTForImageClassification";

// Keys of transformers that do not matter for what a model computes.
const std::set<std::string> without_note = {"model_type",
                                            "architectures",
                                            "profile",
                                            "id2label",
                                            "label2id",
                                            "torch_dtype",
                                            "dtype",
                                            "transformers_version",
                                            "_name_or_path",
                                            "_commit_hash",
                                            "encoder_stride",
                                            "pooler_act",
                                            "pooler_output_size",
                                            "initializer_range",
                                            "problem_type",
                                            "chunk_size_feed_forward",
                                            "output_attentions",
                                            "output_hidden_states",
                                            "return_dict",
                                            "torchscript",
                                            "is_encoder_decoder",
                                            "attention_probs_dropout_prob",
                                            "quantization_config",
                                            "auto_map"};

bool is_list(const Setting& setting) { return setting.rule.type == ValueType::integers; }

// Where the file has the value of a setting: a key of its own, or one of the object "profile".
const json* value_of(const json& object, const std::string& name) {
  if (!name.starts_with("profile.")) return find_key(object, name);
  const json* profile = find_key(object, "profile");
  return profile ? find_key(*profile, name.substr(8)) : nullptr;
}

void check_profile(const json& object, const std::vector<Setting>& table, const std::string& file) {
  const json* profile = find_key(object, "profile");
  if (!profile) return;
  if (!profile->is_object()) bad_config("bad value for profile", file, "an object", shown(*profile));
  std::vector<std::string> names;
  for (const Setting& setting : table) names.push_back(setting.name);
  for (const auto& [name, value] : profile->items())
    if (!find_setting(table, "profile." + name))
      fail(ErrorKind::input, "unknown key 'profile." + detail::preview(name) + "' in " + file +
                                 detail::did_you_mean("profile." + name, names));
}

void reject_unsupported(const json& object, const std::string& file) {
  if (const json* value = find_key(object, "quantization_config"); value && !value->is_null())
    bad_config("bad value for quantization_config", file, "none", shown(*value),
               "write the weights as F32, BF16 or F16 with the program that quantised them");
  const json* given = find_key(object, "architectures");
  if (!given || given->is_null()) return;
  for (const json& item : given->is_array() ? *given : json::array({*given}))
    if (item != kArchitecture)
      bad_config("bad value for architectures", file, kArchitecture, shown(item),
                 item == "ViTModel" ? str("this is the model without its classifier; save it as ", kArchitecture)
                                    : "models of other tasks are not supported");
}

ordered_json described(const VitConfig& config) {
  ordered_json object, profile;
  object["architectures"] = {kArchitecture};
  object["model_type"] = "vit";
  VitConfig copy = config, defaults;
  const std::vector<Setting> table = vit_keys(copy), usual = vit_keys(defaults);
  bool own = false;  // from stem_channels on the keys are Braid's, written only where they say something
  for (size_t i = 0; i < table.size(); ++i) {
    const std::string& name = table[i].name;
    own = own || name == "stem_channels";
    if (name == "compose") continue;  // the settings that it stands for are written
    const Value value = table[i].get();
    if (own && value == usual[i].get()) continue;
    ordered_json written = to_json(value);
    if (is_list(table[i]) && written.size() == 1) written = written[0];
    if (name.starts_with("profile."))
      profile[name.substr(8)] = written;
    else
      object[name] = written;
  }
  if (!profile.is_null()) object["profile"] = profile;
  return object;
}

}  // namespace

VitConfig read_vit_config(const std::string& text, const std::string& file) {
  const json object = parse_config(text, file);
  reject_unsupported(object, file);
  VitConfig config;
  const std::vector<Setting> table = vit_keys(config);
  check_profile(object, table, file);
  for (const Setting& setting : table) {
    const json* value = value_of(object, setting.name);
    if (!value || value->is_null()) continue;
    read_setting(setting, setting.name, is_list(setting) && value->is_number() ? json::array({*value}) : *value, file);
  }
  if (const json* labels = find_key(object, "id2label"); labels && !labels->is_null()) {
    if (!labels->is_object() || labels->empty())
      bad_config("bad value for id2label", file, "an object with a name for each class", shown(*labels));
    config.num_labels = static_cast<int64_t>(labels->size());
  }
  try {
    check_config(config);
  } catch (const Error& error) {
    fail(ErrorKind::input, str("bad model in ", file, ": ", error.what()));
  }
  return config;
}

std::string write_vit_config(const VitConfig& config) { return described(config).dump(2) + "\n"; }

std::string rewrite_vit_config(const std::string& text, const std::string& file, const VitConfig& config,
                               std::optional<DType> stored) {
  const VitConfig was = read_vit_config(text, file);
  ordered_json object = ordered_json::parse(text);
  const char* type = object.contains("dtype") ? "dtype" : "torch_dtype";
  const bool other_type = stored && (!object.contains(type) || object[type] != torch_name(*stored));
  if (was == config && !other_type) return text;
  if (was.num_labels != config.num_labels) object.erase("id2label"), object.erase("label2id");
  const ordered_json before = described(was), now = described(config);
  for (const auto& [key, value] : now.items())
    if (!before.contains(key) || before[key] != value) object[key] = value;
  for (const auto& [key, value] : before.items())
    if (!now.contains(key)) object.erase(key);
  if (stored) object[type] = torch_name(*stored);
  return object.dump(2) + "\n";
}

std::vector<std::string> vit_config_notes(const std::string& text, const std::string& file) {
  const json object = parse_config(text, file);
  std::vector<std::string> notes = code_notes(object, file, kArchitecture), unknown;
  const json* dropout = find_key(object, "attention_probs_dropout_prob");
  if (dropout && dropout->is_number() && *dropout != 0)
    notes.push_back("attention_probs_dropout_prob = " + shown(*dropout) + " in " + file +
                    ": Braid trains without dropout of probabilities");
  VitConfig unused;
  const std::vector<Setting> table = vit_keys(unused);
  for (const auto& [key, value] : object.items())
    if (!find_setting(table, key) && !without_note.contains(key)) unknown.push_back(detail::preview(key, 40));
  if (!unknown.empty())
    notes.push_back("keys of " + file + " without effect here: " + detail::preview(detail::join(unknown, ", "), 200));
  return notes;
}

}  // namespace braid::models
