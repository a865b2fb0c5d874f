// The model types that DcformerConfig describes: one row each makes a family of the registry, with its presets.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace braid::models {

using KeyTexts = std::vector<std::pair<std::string, std::string>>;

// A size of a family. F is the family's rule unless a preset says otherwise.
struct PresetSize {
  const char* name;
  int64_t n_layer, dim, n_head, block_size, vocab_size;
};

struct ModelType {
  std::string name;          // model_type of config.json
  std::string architecture;  // "architectures" of config.json
  KeyTexts keys;             // beside the defaults of DcformerConfig: the published training of DCFormer++ (JAX)
  std::string presets;       // "dcformer": its presets are dcformer-tiny, ...; "": the names of the sizes are complete
  std::string baseline;      // "transformer": transformer-tiny, ... have the same sizes and plain attention; "": none
  std::span<const PresetSize> sizes;
  // Folders are those of the authors' MUDD code (folder.h); `absent` are its values of keys that a file lacks.
  bool mudd_folders = false;
  KeyTexts absent = {};
};
const std::vector<ModelType>& model_types();
const ModelType& model_type_named(const std::string& name);  // one of model_types(), else Error(misuse)
std::vector<std::string> model_type_names();
// The preset of a size, or its baseline.
std::string preset_name(const ModelType& type, const PresetSize& size, bool baseline = false);
std::vector<std::string> preset_names(const ModelType& type);

}  // namespace braid::models
