#include "braid/models/registry.h"

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "braid/models/families/dcformer/family.h"
#include "braid/models/families/seq2seq/family.h"
#include "braid/models/families/vit/family.h"
#include "braid/models/settings.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/io/json.h"

namespace braid::models {
namespace {

std::vector<ModelFamily> built_in_families() {
  std::vector<ModelFamily> families = dcformer_families();
  families.push_back(vit_family());
  families.push_back(seq2seq_family());
  return families;
}

struct Registry {
  std::mutex mutex;
  std::vector<ModelFamily> families = built_in_families();
};
// Never destroyed: a RegisteredFamily may have static lifetime.
Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}

std::vector<std::string> types_of(const std::vector<ModelFamily>& families) {
  std::vector<std::string> names;
  for (const ModelFamily& f : families) names.push_back(f.model_type);
  return names;
}

const ModelFamily* find(const std::vector<ModelFamily>& families, const std::string& model_type) {
  const auto at = std::find_if(families.begin(), families.end(),
                               [&](const ModelFamily& family) { return family.model_type == model_type; });
  return at == families.end() ? nullptr : &*at;
}

}  // namespace

std::vector<ModelFamily> model_families() {
  std::lock_guard lock(registry().mutex);
  return registry().families;
}

RegisteredFamily::RegisteredFamily(ModelFamily family) : model_type_(family.model_type) {
  std::lock_guard lock(registry().mutex);
  check(!find(registry().families, model_type_), ErrorKind::setting,
        [&] { return "a model family '" + model_type_ + "' is registered already: choose another model_type"; });
  registry().families.push_back(std::move(family));
}

RegisteredFamily::~RegisteredFamily() {
  std::lock_guard lock(registry().mutex);
  std::erase_if(registry().families, [&](const ModelFamily& family) { return family.model_type == model_type_; });
}

std::unique_ptr<const ModelSpec> read_model_spec(const std::string& config_json, const std::string& file_name) {
  const std::vector<ModelFamily> families = model_families();
  const nlohmann::json object = io::parse_json(config_json, file_name);
  check(object.is_object(), ErrorKind::input, [&] {
    return "cannot read the model in " + file_name + ": expected a JSON object, found " + detail::preview(config_json);
  });
  check(object.contains("model_type"), ErrorKind::input,
        [&] { return "missing key in " + file_name + ": expected 'model_type', found none"; });
  const nlohmann::json& type = object["model_type"];
  const ModelFamily* family = type.is_string() ? find(families, type.get<std::string>()) : nullptr;
  check(family != nullptr, ErrorKind::input, [&] {
    const std::string found = detail::preview(type.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return "the model_type in " + file_name + " is not supported: expected one of " +
           detail::join(types_of(families), ", ") + ", found " + found +
           (type == "attention" ? "; this folder holds inputs of one attention, not a model (see braid dump)" : "");
  });
  return family->read(config_json, file_name);
}

std::vector<std::string> model_presets() {
  std::vector<std::string> names;
  for (const ModelFamily& family : model_families())
    names.insert(names.end(), family.presets.begin(), family.presets.end());
  return names;
}

std::vector<ModelSetting> model_settings() {
  std::vector<ModelSetting> list;
  std::set<std::string> listed;
  for (const ModelFamily& family : model_families()) {
    for (const ModelSetting& setting : family.settings)
      if (listed.insert(setting.name).second) list.push_back(setting);
  }
  return list;
}

std::vector<std::string> model_profiles() {
  std::vector<std::string> names;
  for (const ModelFamily& family : model_families()) {
    for (const std::string& name : family.profiles)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

ModelFamily find_family(const std::string& preset, const SettingTexts& settings) {
  const std::vector<ModelFamily> families = model_families();
  if (!preset.empty()) {
    for (const ModelFamily& family : families)
      if (std::find(family.presets.begin(), family.presets.end(), preset) != family.presets.end()) return family;
    const std::vector<std::string> names = model_presets();
    fail(ErrorKind::setting, "unknown model preset '" + detail::preview(preset) + "'" +
                                 detail::did_you_mean(preset, names) + " (presets: " + detail::join(names, ", ") + ")");
  }
  for (const auto& [name, value] : settings) {
    if (name != "model_type") continue;
    const ModelFamily* family = find(families, value);
    check(family != nullptr, ErrorKind::setting, [&, &value = value] {
      return bad_value("model key model_type", one_of(types_of(families)), "'" + detail::preview(value) + "'", value);
    });
    return *family;
  }
  return families.front();
}

std::unique_ptr<const ModelSpec> configure_model(const std::string& preset, const SettingTexts& settings) {
  return find_family(preset, settings).configure(preset, settings);
}

}  // namespace braid::models
