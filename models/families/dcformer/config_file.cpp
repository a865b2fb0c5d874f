#include "braid/models/families/dcformer/config_file.h"

#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/json.h"

namespace braid::models {

using nlohmann::json;

void bad_config(const std::string& what, const std::string& file, const std::string& expected, const std::string& found,
                const std::string& advice) {
  fail(ErrorKind::input,
       what + " in " + file + ": expected " + expected + ", found " + found + (advice.empty() ? "" : "; " + advice));
}

std::string shown(const json& value) {
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

void resolve_read(DcformerConfig& config, const std::string& file) {
  try {
    resolve(config);
  } catch (const Error& error) {
    fail(ErrorKind::input, str("bad model in ", file, ": ", error.what()));
  }
}

}  // namespace braid::models
