// The families of models, by the model_type of config.json. The list in registry.cpp is the only one.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braid/models/model_spec.h"

namespace braid::models {

struct ModelFamily {
  std::string model_type;                   // unique
  std::vector<std::string> presets = {};    // names, unique over all families
  std::vector<ModelSetting> settings = {};  // every setting with its default and help
  std::vector<std::string> profiles = {};   // values of the setting profile.name, where there is one
  // From the text of a config.json; file_name is for messages. Error(input).
  std::unique_ptr<const ModelSpec> (*read)(const std::string& config_json, const std::string& file_name);
  // A preset, or the defaults when `preset` is empty, with these settings. Error(setting).
  std::unique_ptr<const ModelSpec> (*configure)(const std::string& preset, const SettingTexts& settings);
};

// In order of registration, the built-in families first.
std::vector<ModelFamily> model_families();
// Adds a family while this object lives; for libraries and tests that bring their own. Error(setting) when the
// model_type is taken.
class RegisteredFamily {
 public:
  explicit RegisteredFamily(ModelFamily family);
  ~RegisteredFamily();
  RegisteredFamily(const RegisteredFamily&) = delete;
  RegisteredFamily& operator=(const RegisteredFamily&) = delete;

 private:
  std::string model_type_;
};

// The spec that a config.json describes, of the family that its model_type names. Error(input) names the file.
std::unique_ptr<const ModelSpec> read_model_spec(const std::string& config_json, const std::string& file_name);
// The family of a named preset. Without a preset the setting model_type names it (the first one when there is none).
// Error(setting) with the nearest name.
ModelFamily find_family(const std::string& preset, const SettingTexts& settings);
// The spec of a named preset of that family, or of its defaults, with these settings. Error(setting).
std::unique_ptr<const ModelSpec> configure_model(const std::string& preset, const SettingTexts& settings);

// Names in all families together, each once.
std::vector<std::string> model_presets();
std::vector<ModelSetting> model_settings();
std::vector<std::string> model_profiles();

}  // namespace braid::models
