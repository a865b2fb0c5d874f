#include "braid/models/families/config_file.h"

#include <cmath>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/json.h"

namespace braid::models {

using nlohmann::json;
using nlohmann::ordered_json;

static constexpr std::string_view kProfile = "profile.";

void bad_config(const std::string& what, const std::string& file, const std::string& expected, const std::string& found,
                const std::string& advice) {
  fail(ErrorKind::input,
       what + " in " + file + ": expected " + expected + ", found " + found + (advice.empty() ? "" : "; " + advice));
}

std::string shown(const json& value) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) return detail::shortest(value.get<double>());
  return detail::preview(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

json parse_config(const std::string& text, const std::string& file) {
  json object = io::parse_json(text, file);
  if (!object.is_object()) bad_config("cannot read the model", file, "a JSON object", shown(object));
  return object;
}

std::vector<std::string> code_notes(const json& object, const std::string& file, const std::string& model) {
  const json* code = find_key(object, "auto_map");
  if (!code || code->is_null()) return {};
  return {file + " names code of its own (auto_map): it is not run; the model is computed as " + model};
}

const json* find_key(const json& object, const std::string& name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

const json& required_key(const json& object, const std::string& name, const std::string& file) {
  const json* value = find_key(object, name);
  if (!value) bad_config("missing key", file, "'" + name + "'", "none");
  return *value;
}

const json* find_value(const json& object, const std::string& setting) {
  if (!setting.starts_with(kProfile)) return find_key(object, setting);
  const json* profile = find_key(object, "profile");
  return profile ? find_key(*profile, setting.substr(kProfile.size())) : nullptr;
}

void check_profile(const json& object, const std::vector<Setting>& table, const std::string& file) {
  const json* profile = find_key(object, "profile");
  if (!profile) return;
  if (!profile->is_object()) bad_config("bad value for profile", file, "an object", shown(*profile));
  std::vector<std::string> names;
  for (const Setting& setting : table) names.push_back(setting.name);
  for (const auto& [key, value] : profile->items()) {
    const std::string name = std::string(kProfile) + key;
    if (!find_setting(table, name))
      fail(ErrorKind::input, "unknown key '" + std::string(kProfile) + detail::preview(key) + "' in " + file +
                                 detail::did_you_mean(name, names));
  }
}

void reject_quantized(const json& object, const std::string& file) {
  if (const json* value = find_key(object, "quantization_config"); value && !value->is_null())
    bad_config("bad value for quantization_config", file, "none", shown(*value),
               "write the weights as F32, BF16 or F16 with the program that quantised them");
}

ordered_json add_values(ordered_json& object, const std::vector<Setting>& table,
                        const std::function<bool(const Setting&)>& written) {
  ordered_json profile;
  for (const Setting& setting : table) {
    if (!written(setting)) continue;
    const bool inside = setting.name.starts_with(kProfile);
    (inside ? profile : object)[inside ? setting.name.substr(kProfile.size()) : setting.name] = to_json(setting.get());
  }
  return profile;
}

std::set<std::string> keys_without_note(const std::string& more) {
  const std::vector<std::string> names = detail::split(
      "model_type architectures profile id2label label2id torch_dtype dtype transformers_version _name_or_path "
      "_commit_hash problem_type chunk_size_feed_forward output_attentions output_hidden_states return_dict "
      "torchscript is_encoder_decoder quantization_config auto_map " +
          more,
      ' ');
  return {names.begin(), names.end()};
}

void note_unknown_keys(const json& object, const std::string& file,
                       const std::function<bool(const std::string&)>& has_effect, std::vector<std::string>& notes) {
  std::vector<std::string> unknown;
  for (const auto& [key, value] : object.items())
    if (!has_effect(key)) unknown.push_back(detail::preview(key, 40));
  if (!unknown.empty())
    notes.push_back("keys of " + file + " without effect here: " + detail::preview(detail::join(unknown, ", "), 200));
}

std::optional<Value> from_json(const json& value) {
  if (value.is_null()) return Value();
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer() && !(value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX))
    return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return {};
  std::vector<Value> items;
  for (const json& item : value) items.push_back(from_json(item).value_or(false));
  return list_value(items);
}

json to_json(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) return *texts;
  const std::string text = value_text(value);  // numbers as they are written everywhere: 1, not 1.0
  return json::parse(std::holds_alternative<std::vector<int64_t>>(value) ? "[" + text + "]" : text);
}

void read_setting(const Setting& setting, const std::string& name, const json& value, const std::string& file) {
  const std::optional<Value> given = from_json(value);
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  check(given && assign(setting, *given), ErrorKind::input,
        [&] { return bad_value(name + " in " + file, setting.rule, shown(value), text); });
}

const char* torch_name(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "float64";
    case DType::bf16:
      return "bfloat16";
    case DType::f16:
      return "float16";
    default:
      return "float32";
  }
}

void check_read(const std::string& file, const std::function<void()>& check) {
  try {
    check();
  } catch (const Error& error) {
    fail(ErrorKind::input, str("bad model in ", file, ": ", error.what()));
  }
}

}  // namespace braid::models
