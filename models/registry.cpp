#include "braid/models/registry.h"

#include <algorithm>
#include <functional>
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

using Families = std::vector<ModelFamily>;

std::shared_ptr<const Families> built_in_families() {
  Families families = dcformer_families();
  families.push_back(vit_family());
  families.push_back(seq2seq_family());
  return std::make_shared<const Families>(std::move(families));
}

struct Registry {
  std::mutex mutex;
  std::shared_ptr<const Families> families = built_in_families();
  void update(const std::function<void(Families&)>& change) {
    const std::lock_guard lock(mutex);
    Families changed = *families;
    change(changed);
    families = std::make_shared<const Families>(std::move(changed));
  }
};
// Never destroyed: a RegisteredFamily may have static lifetime.
Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}

std::shared_ptr<const Families> families_now() {
  const std::lock_guard lock(registry().mutex);
  return registry().families;
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

const ModelFamily& find(const Families& families, const std::string& preset, const SettingTexts& settings) {
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

}  // namespace

std::vector<ModelFamily> model_families() { return *families_now(); }

RegisteredFamily::RegisteredFamily(ModelFamily family) : model_type_(family.model_type) {
  registry().update([&](Families& families) {
    check(!find(families, model_type_), ErrorKind::setting,
          [&] { return "a model family '" + model_type_ + "' is registered already: choose another model_type"; });
    families.push_back(std::move(family));
  });
}

RegisteredFamily::~RegisteredFamily() {
  registry().update([&](Families& families) {
    std::erase_if(families, [&](const ModelFamily& family) { return family.model_type == model_type_; });
  });
}

std::unique_ptr<const ModelSpec> read_model_spec(const std::string& config_json, const std::string& file_name) {
  const std::shared_ptr<const Families> families = families_now();
  const nlohmann::json object = io::parse_json(config_json, file_name);
  check(object.is_object(), ErrorKind::input, [&] {
    return "cannot read the model in " + file_name + ": expected a JSON object, found " + detail::preview(config_json);
  });
  check(object.contains("model_type"), ErrorKind::input,
        [&] { return "missing key in " + file_name + ": expected 'model_type', found none"; });
  const nlohmann::json& type = object["model_type"];
  const ModelFamily* family = type.is_string() ? find(*families, type.get<std::string>()) : nullptr;
  check(family != nullptr, ErrorKind::input, [&] {
    const std::string found = detail::preview(type.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return "the model_type in " + file_name + " is not supported: expected one of " +
           detail::join(types_of(*families), ", ") + ", found " + found +
           (type == "attention" ? "; this folder holds inputs of one attention, not a model (see braid dump)" : "");
  });
  return family->read(config_json, file_name);
}

std::vector<std::string> model_presets() {
  std::vector<std::string> names;
  for (const std::shared_ptr<const Families> families = families_now(); const ModelFamily& family : *families)
    names.insert(names.end(), family.presets.begin(), family.presets.end());
  return names;
}

std::vector<ModelSetting> model_settings() {
  std::vector<ModelSetting> list;
  std::set<std::string> listed;
  for (const std::shared_ptr<const Families> families = families_now(); const ModelFamily& family : *families) {
    for (const ModelSetting& setting : family.settings)
      if (listed.insert(setting.name).second) list.push_back(setting);
  }
  return list;
}

std::vector<std::string> model_profiles() {
  std::vector<std::string> names;
  for (const std::shared_ptr<const Families> families = families_now(); const ModelFamily& family : *families) {
    for (const std::string& name : family.profiles)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

ModelFamily find_family(const std::string& preset, const SettingTexts& settings) {
  return find(*families_now(), preset, settings);
}

std::unique_ptr<const ModelSpec> configure_model(const std::string& preset, const SettingTexts& settings) {
  const std::shared_ptr<const Families> families = families_now();
  return find(*families, preset, settings).configure(preset, settings);
}

}  // namespace braid::models
