#include "braid/models/folders/init_from.h"

#include <algorithm>
#include <map>

#include "braid/models/image_model.h"
#include "braid/tensor/base/strings.h"

namespace braid::models {

namespace fs = std::filesystem;

namespace {

const ModelSetting* find(const std::vector<ModelSetting>& settings, const std::string& name) {
  const auto at = std::ranges::find(settings, name, &ModelSetting::name);
  return at == settings.end() ? nullptr : &*at;
}

// The settings of the target that differ from the origin's.
SettingTexts changes(const ModelSpec& origin, const ModelSpec& target) {
  const std::vector<ModelSetting> before = origin.settings();
  SettingTexts changed;
  for (const ModelSetting& setting : target.settings()) {
    const ModelSetting* was = find(before, setting.name);
    if (!was || was->value != setting.value) changed.emplace_back(setting.name, setting.value);
  }
  return changed;
}

void check_settings(const ModelSpec& origin, const ModelSpec& target, const fs::path& folder) {
  const std::vector<ModelSetting> before = origin.settings();
  std::vector<std::string> problems;
  if (origin.model_type() != target.model_type())
    problems.push_back("model_type = " + origin.model_type() + ", found " + target.model_type());
  for (const auto& [name, value] : changes(origin, target)) {
    const ModelSetting* was = find(before, name);
    if (name == "model_type" || (was && (was->may_change || !was->in_use))) continue;
    problems.push_back("model." + name + " = " + (was ? was->value : "none") + ", found " + value);
  }
  check(problems.empty(), ErrorKind::setting, [&] {
    constexpr size_t kListed = 4;
    if (problems.size() > kListed) {
      const std::string more = str("and ", problems.size() - kListed, " more");
      problems.resize(kListed);
      problems.push_back(more);
    }
    return "the model in " + folder.string() + " is another one than the configured: expected " +
           detail::join(problems, "; ") + "; leave these settings out, the folder has them";
  });
}

// The classes of an image model have the names of the target, or, where that has none, of the folder.
void name_classes(Model& model, const ModelSpec& origin, const ModelSpec& target) {
  auto* image = dynamic_cast<ImageModel*>(&model);
  for (const ModelSpec* spec : {&origin, &target}) {
    const auto* named = dynamic_cast<const ImageModelSpec*>(spec);
    if (image && named && !named->class_names().empty()) image->name_classes(named->class_names());
  }
}

}  // namespace

std::vector<nn::NamedTensor> added_parameters(const ModelSpec& origin, const ModelSpec& target,
                                              const fs::path& folder) {
  check_settings(origin, target, folder);
  std::map<std::string, Shape> before;
  for (const nn::NamedTensor& p : origin.parameters()) before[p.name] = p.value.shape();
  std::vector<nn::NamedTensor> added;
  std::vector<std::string> problems;
  for (const nn::NamedTensor& p : target.parameters()) {
    const auto was = before.find(p.name);
    if (was == before.end()) {
      added.push_back(p);
      continue;
    }
    if (!(was->second == p.value.shape()))
      problems.push_back(str(p.name, " would be ", p.value.shape(), ", but is ", was->second));
    before.erase(was);
  }
  for (const auto& [name, shape] : before) problems.push_back(str(name, " ", shape, " would have no place"));
  check(problems.empty(), ErrorKind::setting, [&] {
    constexpr size_t kListed = 6;
    const size_t found = problems.size();
    if (found > kListed) problems.resize(kListed);
    return "the model cannot continue from " + folder.string() + ": of its weights " + detail::join(problems, "; ") +
           (found > kListed ? str("; and ", found - kListed, " more") : "");
  });
  return added;
}

LoadedModel init_from(const fs::path& folder, const ModelSpec& target, RandomKey key, DType dtype,
                      const dist::ProcessMesh& mesh, const fs::path& base) {
  require_model_folder(folder);
  const std::unique_ptr<const ModelSpec> origin = inspect_model(folder, base).spec;
  LoadOptions options{.dtype = dtype, .mesh = mesh, .tokenizer = false, .base = base};
  if (added_parameters(*origin, target, folder).empty()) {
    options.settings = changes(*origin, target);
    LoadedModel loaded = load_model(folder, options);
    name_classes(*loaded.model, *origin, target);
    return loaded;
  }
  LoadedModel loaded = load_model(folder, options);
  std::map<std::string, Tensor> values;
  for (const nn::NamedTensor& p : nn::parameters(*loaded.model)) values[p.name] = p.value;
  std::unique_ptr<Model> model = target.make(key, mesh);
  model->to(dtype);
  nn::replace_parameters(*model, [&](const std::string& name, const Tensor& first) {
    const auto at = values.find(name);
    return at == values.end() ? first : at->second;
  });
  name_classes(*model, *origin, target);
  loaded.model = std::move(model);
  return loaded;
}

}  // namespace braid::models
