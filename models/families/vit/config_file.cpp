// config.json of ViT folders, in and out.
#include <set>

#include "braid/models/families/config_file.h"
#include "braid/models/families/layer_pattern.h"
#include "braid/models/families/vit/config.h"
#include "braid/models/folders/merge_json.h"
#include "braid/tensor/io/json.h"

namespace braid::models {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kArchitecture = "ViTForImageClassification";

// Keys of transformers that do not matter for what a model computes.
const std::set<std::string> without_note =
    keys_without_note("encoder_stride pooler_act pooler_output_size initializer_range attention_probs_dropout_prob");

bool is_list(const Setting& setting) { return setting.rule.type == ValueType::integers; }

void reject_unsupported(const json& object, const std::string& file) {
  reject_quantized(object, file);
  const json* given = find_key(object, "architectures");
  if (!given || given->is_null()) return;
  for (const json& item : given->is_array() ? *given : json::array({*given}))
    if (item != kArchitecture)
      bad_config("bad value for architectures", file, kArchitecture, shown(item),
                 item == "ViTModel" ? str("this is the model without its classifier; save it as ", kArchitecture)
                                    : "models of other tasks are not supported");
}

// The pattern for an array of layers, or one of them.
std::string layers_text(const json& layers, const std::string& file) {
  const std::optional<Value> value = from_json(layers.is_array() ? layers : json::array({layers}));
  const auto* list = value ? std::get_if<std::vector<int64_t>>(&*value) : nullptr;
  if (!list) bad_config("bad value for compose_layers", file, layer_pattern_rule().condition, shown(layers));
  return list->empty() ? "all" : value_text(*list);
}

// The names of id2label by number; none where they are those that transformers gives classes without names.
std::vector<std::string> read_class_names(const json& labels, const std::string& file) {
  if (!labels.is_object() || labels.empty())
    bad_config("bad value for id2label", file, "an object with a name for each class", shown(labels));
  std::vector<std::string> names;
  bool named = false;
  for (size_t k = 0; k < labels.size(); ++k) {
    const json* name = find_key(labels, std::to_string(k));
    if (!name || !(name->is_string() || name->is_number_integer()))
      bad_config("bad value for id2label", file, str("a name for each number from 0 to ", labels.size() - 1),
                 name ? shown(*name) + str(" for ", k) : str("none for ", k));
    names.push_back(name->is_string() ? name->get<std::string>() : name->dump());
    named = named || names.back() != str("LABEL_", k);
  }
  if (!named) names.clear();
  return names;
}

ordered_json described(const VitConfig& config) {
  ordered_json object;
  object["architectures"] = {kArchitecture};
  object["model_type"] = "vit";
  VitConfig copy = config, defaults;
  const std::vector<Setting> usual = vit_keys(defaults);
  bool own = false;  // from stem_channels on the keys are Braid's, written only where they say something
  const ordered_json profile = add_values(object, vit_keys(copy), [&](const Setting& setting) {
    own = own || setting.name == "stem_channels";
    if (setting.name == "compose") return false;  // the settings that it stands for are written
    return !own || setting.get() != find_setting(usual, setting.name)->get();
  });
  // A list of layers is an array, as that of image_size.
  if (object.contains("compose_layers"))
    if (const auto layers = listed_layers(config.compose_layers)) object["compose_layers"] = *layers;
  for (auto& [key, value] : object.items())
    if (value.is_array() && value.size() == 1 && value[0].is_number()) value = ordered_json(value[0]);
  for (size_t k = 0; k < config.class_names.size(); ++k) {
    object["id2label"][std::to_string(k)] = config.class_names[k];
    object["label2id"][config.class_names[k]] = k;
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
    const json* value = find_value(object, setting.name);
    if (!value || value->is_null()) continue;
    json given = is_list(setting) && value->is_number() ? json::array({*value}) : *value;
    if (setting.name == "compose_layers" && !given.is_string()) given = layers_text(given, file);
    read_setting(setting, setting.name, given, file);
  }
  if (const json* labels = find_key(object, "id2label"); labels && !labels->is_null()) {
    config.class_names = read_class_names(*labels, file);
    config.num_labels = static_cast<int64_t>(labels->size());
  }
  check_read(file, [&] { check_config(config); });
  return config;
}

std::string write_vit_config(const VitConfig& config) { return described(config).dump(2) + "\n"; }

std::string rewrite_vit_config(const std::string& text, const std::string& file, const VitConfig& config,
                               std::optional<DType> stored) {
  const VitConfig was = read_vit_config(text, file);
  const json object = io::parse_json(text, file);
  ordered_json before = described(was), now = described(config);
  if (was.num_labels != config.num_labels)
    before["id2label"] = before["label2id"] = nullptr;  // the names of other classes
  const char* type = object.contains("dtype") ? "dtype" : "torch_dtype";
  if (stored && object.contains(type)) before[type] = object[type];
  if (stored) now[type] = torch_name(*stored);
  return merge_json(text, before, now);
}

std::vector<std::string> vit_config_notes(const std::string& text, const std::string& file) {
  const json object = parse_config(text, file);
  std::vector<std::string> notes = code_notes(object, file, kArchitecture);
  const json* dropout = find_key(object, "attention_probs_dropout_prob");
  if (dropout && dropout->is_number() && *dropout != 0)
    notes.push_back("attention_probs_dropout_prob = " + shown(*dropout) + " in " + file +
                    ": Braid trains without dropout of probabilities");
  VitConfig unused;
  const std::vector<Setting> table = vit_keys(unused);
  note_unknown_keys(
      object, file, [&](const std::string& key) { return find_setting(table, key) || without_note.contains(key); },
      notes);
  return notes;
}

}  // namespace braid::models
