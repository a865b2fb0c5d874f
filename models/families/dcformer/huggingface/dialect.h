// Folders of LLaMA and GPT-NeoX as Hugging Face's transformers reads and writes them. Their models are the decoder of
// model.h with other settings; a dialect is the table of what their config.json and their weight files call these
// settings and parameters.
#pragma once
#include <string>
#include <vector>

namespace braid::models {

// A key of config.json and the setting that holds it.
struct KeyName {
  std::string key, setting;
  std::string absent;  // its value in files without the key, as set_key() takes it
};
// Parameters below one module and the tensors that store them: queries, keys and values are one parameter.
struct ModuleName {
  std::string module;
  std::vector<std::string> stored;
};

struct Dialect {
  std::string model_type;
  std::vector<std::string> also_reads;     // other values of model_type, of models that may be the same
  std::vector<std::string> architectures;  // that compute this model; the first one is written
  std::string base;                        // the architecture without head
  std::vector<KeyName> keys;

  std::string theta_key, partial_key;  // of rotary_pct; "": none, all of a head is rotated
  std::string partial_absent;

  std::string prefix;                    // of every tensor of `base`
  std::string head;                      // the output projection
  std::vector<ModuleName> model, layer;  // `layer` below prefix + "layers.<i>."; the first match counts
  bool rows_by_head = false;             // rows of the fused q, k, v: those of head 0, of head 1, ...
  std::vector<std::string> ignored;      // ends of the names of tables that old files hold
};

// The dialect of a model_type; null: folders of that family have the form of DCFormer's.
const Dialect* find_dialect(const std::string& model_type);
// The dialect that reads a config.json of this model_type, also of a foreign one that may be the same model.
const Dialect* find_reading_dialect(const std::string& model_type);

}  // namespace braid::models
