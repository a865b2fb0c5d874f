// The values of a config.json as settings, and the errors in them.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "braid/models/families/dcformer/config.h"
#include "braid/models/settings.h"
#include "braid/tensor/dtype.h"

namespace braid::models {

// Error(input): "WHAT in FILE: expected EXPECTED, found FOUND; ADVICE"
[[noreturn]] void bad_config(const std::string& what, const std::string& file, const std::string& expected,
                             const std::string& found, const std::string& advice = "");
std::string shown(const nlohmann::json& value);  // short, for messages

nlohmann::json parse_config(const std::string& text, const std::string& file);  // an object
const nlohmann::json* find_key(const nlohmann::json& object, const std::string& name);
const nlohmann::json& required_key(const nlohmann::json& object, const std::string& name, const std::string& file);

// Nothing for what no setting can be: an object, a mixed list.
std::optional<Value> from_json(const nlohmann::json& value);
nlohmann::json to_json(const Value& value);
// Sets the setting; `name` is what the file calls it.
void read_setting(const Setting& setting, const std::string& name, const nlohmann::json& value,
                  const std::string& file);
// A note where the file names code of its own, which is never run: the model is computed as `model`.
std::vector<std::string> code_notes(const nlohmann::json& object, const std::string& file, const std::string& model);
const char* torch_name(DType dtype);  // "bfloat16"
// resolve() with Error(input) that names the file.
void resolve_read(DcformerConfig& config, const std::string& file);

}  // namespace braid::models
