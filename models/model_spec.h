// The resolved configuration of a model of any family, before anything is allocated: its settings, and how it is built.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braid/distributed/sharding/process_mesh.h"
#include "braid/models/model.h"
#include "braid/tensor/random.h"

namespace braid::models {

// Names and texts of settings, as config.json and the command line name them.
using SettingTexts = std::vector<std::pair<std::string, std::string>>;

struct ModelSetting {
  std::string name;
  std::string value;   // the text that configure() takes
  std::string help;    // one line
  bool in_use = true;  // false: without effect beside the other settings
};

class ModelSpec {
 public:
  virtual ~ModelSpec() = default;
  virtual std::string model_type() const = 0;
  // Text of config.json; read_model_spec() of it gives this spec.
  virtual std::string config_json() const = 0;
  // In order of importance: sizes first, what often follows from them later.
  virtual std::vector<ModelSetting> settings() const = 0;
  // This spec with other settings, resolved again. Error(setting) names the setting.
  virtual std::unique_ptr<const ModelSpec> with(const SettingTexts& settings) const = 0;

  // The model with its first weights, each a function of the key and of the parameter's name alone, whatever the mesh.
  // Over a mesh a rank holds its shards. Error(setting) when the model cannot be sharded so.
  virtual std::unique_ptr<Model> make(RandomKey key, const dist::ProcessMesh& mesh = {}) const = 0;
};

// The settings in which two specs differ, as "model.dim = 64, found 128".
std::vector<std::string> differing_settings(const ModelSpec& expected, const ModelSpec& found);

}  // namespace braid::models
