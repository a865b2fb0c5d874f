// Folders of LLaMA, Mistral, Qwen, OLMo2, Gemma and GPT-NeoX as Hugging Face's transformers reads and writes them.
// Their models are the decoder of model.h with other settings; a dialect is the table of what their config.json and
// their weight files call these settings and parameters.
#pragma once
#include <string>
#include <vector>

#include "braid/models/families/dcformer/config.h"
#include "braid/models/folders/folder.h"

namespace braid::models {

// A key of config.json and the setting that holds it. A key of several rows stands for settings that are equal.
struct KeyName {
  std::string key, setting;
  std::string absent;     // its value in files without the key, as set_key() takes it
  std::string null = "";  // the value that null stands for; "": that of the setting, or as absent
};

// How config.json says which layers are local (windows.cpp).
enum class LocalLayers : uint8_t {
  none,     // no layer is
  all,      // sliding_window, of all layers
  each,     // sliding_window, of the layers that layer_types names
  pattern,  // the same, always in use; without layer_types of all but every n-th layer
};

struct Dialect {
  std::string model_type;
  std::vector<std::string> architectures;  // that compute this model; the first one is written
  std::vector<KeyName> keys;

  std::string theta_key, partial_key;  // of rotary_pct; "": none, all of a head is rotated
  std::string partial_absent;
  double theta_absent = 10000;

  LocalLayers local = LocalLayers::none;
  int64_t local_pattern = 0;  // n of `pattern`
  bool pattern_key = false;   // sliding_window_pattern is n

  std::vector<std::string> unset = {};  // keys that must be missing, null or false

  FolderTable weights;        // of every model
  bool one_kv_per_q = false;  // files have as many keys and values as queries
};

// The dialect of a model_type; null: folders of that family have the form of DCFormer's.
const Dialect* find_dialect(const std::string& model_type);
// How folders of the dialect store the weights of a model.
FolderTable dialect_folder(const Dialect& dialect, const DcformerConfig& config);

}  // namespace braid::models
