// The table of configuration keys: set_key, config.json reading and writing, range checks and help are all made from
// it.
#pragma once
#include <string>
#include <vector>

#include "braid/models/dcformer/config.h"

namespace braid::models {

enum class KeyType : uint8_t {
  boolean,
  whole,
  number,
  word,     // one of `choices`
  words,    // list of `choices`
  windows,  // list of whole numbers; null = 0
};

struct ConfigKey {
  std::string name;  // config.json name, "profile.x" for the members of the object "profile"
  std::string help;
  KeyType type;
  std::string (*get)(const ConfigKey& key, const ModelConfig& config);
  void (*set)(const ConfigKey& key, ModelConfig& config, const std::string& text);  // text fits the key
  double min = 0, max = 0;                                                          // whole, number, each window
  std::vector<std::string> choices = {};
  std::string null_text = "";  // the text that stands in files as null
  bool nullable = false;
};

const std::vector<ConfigKey>& key_table();
// The value as text: what set_key() takes, lists as "a,b".
std::string key_text(const ConfigKey& key, const ModelConfig& config);
// "a whole number from 1 to 16384, or null"
std::string expectation(const ConfigKey& key);
// False when the text is not an allowed value; the configuration is unchanged then.
bool set_text(const ConfigKey& key, ModelConfig& config, const std::string& text);
// "a,b" or "[a, b]" -> {"a", "b"}
std::vector<std::string> list_items(const std::string& text);
// Sets what belongs to the family: norm, ffn, biases, residual, rotary_pct.
void set_family(ModelConfig& config, const std::string& model_type);
// Sets what the named profile fixes; "custom" changes nothing.
void set_profile(ModelConfig& config, const std::string& name);

}  // namespace braid::models
