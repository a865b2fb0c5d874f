// Copies of the folders in tests/golden/hf with keys and tensors changed.
#pragma once
#include <nlohmann/json.hpp>

#include "tests/models/folders/support.h"
#include "tests/support/places.h"

namespace braid::test {

inline const std::string kHuggingFace = source_dir() + "/tests/golden/hf/";

inline FolderData huggingface_folder(const std::string& name) { return read_folder(kHuggingFace + name); }

inline void set_keys(FolderData& data, const nlohmann::json& keys) {
  nlohmann::ordered_json object = nlohmann::ordered_json::parse(data.config);
  for (const auto& [key, value] : keys.items()) object[key] = value;
  data.config = object.dump(2) + "\n";
}
inline void remove_keys(FolderData& data, const std::vector<std::string>& keys) {
  nlohmann::ordered_json object = nlohmann::ordered_json::parse(data.config);
  for (const std::string& key : keys) object.erase(key);
  data.config = object.dump(2) + "\n";
}

}  // namespace braid::test
