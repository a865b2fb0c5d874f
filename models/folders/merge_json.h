// Changes of a config.json that another program wrote.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace braid::models {

// Sets or removes those keys of the object in which `now` differs from `before`; all others stay as they are, where
// they are. New keys come last, in the order of `now`.
void merge_json(nlohmann::ordered_json& object, const nlohmann::ordered_json& before,
                const nlohmann::ordered_json& now);
// The same for the text of an object: the text itself where the two are equal.
std::string merge_json(const std::string& text, const nlohmann::ordered_json& before,
                       const nlohmann::ordered_json& now);

}  // namespace braid::models
