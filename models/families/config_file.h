// The values of a config.json as settings, and the errors in them. A setting "profile.x" is the member x of the object
// "profile".
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

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

// Where the file has the value of a setting; null: nowhere.
const nlohmann::json* find_value(const nlohmann::json& object, const std::string& setting);
// Error(input) unless "profile" is missing or an object whose members are settings of the table.
void check_profile(const nlohmann::json& object, const std::vector<Setting>& table, const std::string& file);
// Error(input) for weights that are quantised.
void reject_quantized(const nlohmann::json& object, const std::string& file);

// Nothing for what no setting can be: an object, a mixed list.
std::optional<Value> from_json(const nlohmann::json& value);
nlohmann::json to_json(const Value& value);
// Sets the setting; `name` is what the file calls it.
void read_setting(const Setting& setting, const std::string& name, const nlohmann::json& value,
                  const std::string& file);
// Adds the values of settings for which `written` holds to a file that is written. Returns the object "profile", which
// comes last; null where nothing is in it.
nlohmann::ordered_json add_values(nlohmann::ordered_json& object, const std::vector<Setting>& table,
                                  const std::function<bool(const Setting&)>& written);

// The keys of a file for transformers that do not matter for what a model computes, and those named here.
std::set<std::string> keys_without_note(const std::string& more);
// A note that lists the keys for which has_effect() does not hold.
void note_unknown_keys(const nlohmann::json& object, const std::string& file,
                       const std::function<bool(const std::string&)>& has_effect, std::vector<std::string>& notes);
// A note where the file names code of its own, which is never run: the model is computed as `model`.
std::vector<std::string> code_notes(const nlohmann::json& object, const std::string& file, const std::string& model);
const char* torch_name(DType dtype);  // "bfloat16"
// Runs check() of what was read, with Error(input) that names the file.
void check_read(const std::string& file, const std::function<void()>& check);

}  // namespace braid::models
