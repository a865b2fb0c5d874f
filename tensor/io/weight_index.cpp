#include "braid/tensor/io/weight_index.h"

#include <nlohmann/json.hpp>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/io/json.h"
#include "braid/tensor/io/reader.h"

namespace braid::io {

using nlohmann::json;

namespace {
constexpr const char* kTotalParameters = "total_parameters";

[[noreturn]] void bad(const std::string& path, const std::string& expected, const json& found) {
  fail_input("bad index of weights", path, -1, expected,
             detail::preview(found.dump(-1, ' ', true, json::error_handler_t::replace)),
             "the file is damaged or of another kind");
}
}  // namespace

WeightIndex parse_weight_index(const std::string& text, const std::string& path) {
  const json object = parse_json(text, path);
  if (!object.is_object() || !object.contains("weight_map") || !object["weight_map"].is_object() ||
      object["weight_map"].empty())
    bad(path, "an object \"weight_map\" that names the file of every tensor", object);
  WeightIndex index;
  for (const auto& [name, value] : object["weight_map"].items()) {
    const std::string file = value.is_string() ? value.get<std::string>() : "";
    if (file.empty() || file.front() == '.' || file.find('/') != std::string::npos ||
        file.find('\0') != std::string::npos)
      bad(path, "a file name without folder for \"" + name + "\"", value);
    index.file_of[name] = file;
  }
  if (const auto metadata = object.find("metadata"); metadata != object.end() && metadata->is_object()) {
    for (const auto& [name, value] : metadata->items()) index.metadata[name] = value.dump();
  }
  return index;
}

std::string weight_index_text(WeightIndex index, int64_t total_bytes, int64_t total_elements) {
  json object;
  if (index.metadata.contains(kTotalParameters)) index.metadata[kTotalParameters] = std::to_string(total_elements);
  index.metadata["total_size"] = std::to_string(total_bytes);
  for (const auto& [name, value] : index.metadata) object["metadata"][name] = json::parse(value);
  object["weight_map"] = index.file_of;
  return object.dump(2) + "\n";
}

}  // namespace braid::io
