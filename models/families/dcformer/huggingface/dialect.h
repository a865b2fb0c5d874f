// Folders of LLaMA and GPT-NeoX as Hugging Face's transformers reads and writes them. Their models are the decoder of
// model.h with other settings; a dialect is the table of what their config.json and their weight files call these
// settings and parameters.
#pragma once
#include <string>
#include <vector>

#include "braid/models/families/dcformer/config.h"
#include "braid/models/folders/folder.h"

namespace braid::models {

// A key of config.json and the setting that holds it.
struct KeyName {
  std::string key, setting;
  std::string absent;  // its value in files without the key, as set_key() takes it
};

struct Dialect {
  std::string model_type;
  // Other values of model_type, of models that are the same on a condition ("without ...").
  std::vector<std::pair<std::string, std::string>> also_reads;
  std::vector<std::string> architectures;  // that compute this model; the first one is written
  std::vector<KeyName> keys;

  std::string theta_key, partial_key;  // of rotary_pct; "": none, all of a head is rotated
  std::string partial_absent;

  FolderTable weights;        // of every model
  bool one_kv_per_q = false;  // files have as many keys and values as queries
};

// The dialect of a model_type; null: folders of that family have the form of DCFormer's.
const Dialect* find_dialect(const std::string& model_type);
// How folders of the dialect store the weights of a model.
FolderTable dialect_folder(const Dialect& dialect, const DcformerConfig& config);
// The dialect that reads a config.json of this model_type, also of a foreign one that may be the same model.
const Dialect* find_reading_dialect(const std::string& model_type);

}  // namespace braid::models
