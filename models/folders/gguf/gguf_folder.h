// A GGUF file as a model folder: config.json, weights under the names of Hugging Face's folders, tokenizer; and a model
// as a GGUF file (README.md).
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "braid/models/data/tokenizers/tokenizer.h"
#include "braid/models/model.h"
#include "braid/tensor/io/safetensors.h"

namespace braid::models {

// A file (not a folder) whose name ends in .gguf.
bool is_gguf(const std::filesystem::path& path);

struct GgufFolder {
  std::map<std::string, std::string> files;  // by name, config.json among them
  io::TensorFiles weights;
  std::string types;       // of the tensors: "F32, Q4_0"
  bool quantised = false;  // some are in groups (tensor/group_weight.h)
  std::string note;        // for the user; "": none
};
// Reads no data of tensors. Error(input) for what Braid has no equal of. The weights may be read while it lives or not.
GgufFolder open_gguf(const std::filesystem::path& path);

// The tokens that end a text; ids >= `vocabulary` are skipped.
std::vector<int32_t> gguf_end_ids(const std::filesystem::path& path, int64_t vocabulary);

// Writes the model of a published family; matrices as `type`, f32, f16, bf16, q8_0 or q4_0, all else as f32.
// Error(setting) for a model or tokenizer that the format has no name for, and where the rows of a matrix are no
// multiple of 32. tokenizer: may be null. ends: of a text, where the tokenizer has none. Returns a note for the user on
// texts whose ids the file changes; "": none.
std::string save_gguf(const Model& model, const text::Tokenizer* tokenizer, const std::string& type,
                      const std::filesystem::path& path, const std::vector<int32_t>& ends = {});

}  // namespace braid::models
