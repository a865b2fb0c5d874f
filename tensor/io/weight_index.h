// model.safetensors.index.json: which file of a folder holds each tensor.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace braid::io {

struct WeightIndex {
  std::map<std::string, std::string> file_of;   // by tensor; names without folder
  std::map<std::string, std::string> metadata;  // of its object "metadata", each value as JSON
};

// Error(input) names the file and what is wrong. `path` is for messages.
WeightIndex parse_weight_index(const std::string& text, const std::string& path);
// The sizes of the object "metadata" are those given here, total_parameters only where the object has it.
std::string weight_index_text(WeightIndex index, int64_t total_bytes, int64_t total_elements);

}  // namespace braid::io
