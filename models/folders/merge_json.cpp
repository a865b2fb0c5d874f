#include "braid/models/folders/merge_json.h"

#include "braid/tensor/io/json.h"

namespace braid::models {

using nlohmann::ordered_json;

void merge_json(ordered_json& object, const ordered_json& before, const ordered_json& now) {
  for (const auto& [key, value] : now.items())
    if (!before.contains(key) || before[key] != value) object[key] = value;
  for (const auto& [key, value] : before.items())
    if (!now.contains(key)) object.erase(key);
}

std::string merge_json(const std::string& text, const ordered_json& before, const ordered_json& now) {
  if (before == now) return text;
  ordered_json object = io::parse_ordered_json(text, "config.json");
  merge_json(object, before, now);
  return object.dump(2) + "\n";
}

}  // namespace braid::models
