#include "braid/models/model_spec.h"

#include <algorithm>

#include "braid/models/folders/folder.h"
#include "braid/nn/init.h"

namespace braid::models {

std::unique_ptr<Model> ModelSpec::make_shape_only(const dist::ProcessMesh& mesh) const {
  const nn::ShapeOnlyScope no_memory;
  return make({}, mesh);
}

std::vector<nn::NamedTensor> ModelSpec::parameters() const { return nn::parameters(*make_shape_only()); }

ModelSize ModelSpec::size() const {
  const int64_t elements = nn::count(*make_shape_only());
  return {.parameters = elements, .non_embedding = elements};
}

SettingTexts ModelSpec::matching_settings(int64_t) const { return {}; }

double ModelSpec::forward_flops(int64_t) const { return 2 * static_cast<double>(size().parameters); }

TrainingMemory ModelSpec::training_memory(const TrainingSetup& setup) const {
  const RankParameters rank = rank_parameters(*make_shape_only(), setup.mesh, 0);
  const auto bytes = static_cast<double>(setup.bytes_per_element), wide = std::max(4.0, bytes);  // wide: masters
  const auto held = static_cast<double>(rank.held), owned = static_cast<double>(rank.owned);
  TrainingMemory memory;
  memory.weights = held * (wide + (bytes < wide ? bytes : 0));
  memory.gradients = held * wide;
  memory.optimizer = static_cast<double>(setup.optimizer_moments) * owned * wide;
  return memory;
}

StepVolume ModelSpec::step_volume(const MeshShape& mesh, const MeshCoord& rank, const StepShape& step) const {
  StepVolume volume;
  add_gradient_volume(volume, *make_shape_only(), mesh, rank, step);
  return volume;
}

std::vector<InfoSection> ModelSpec::info(const InfoRequest&) const {
  const auto elements = static_cast<double>(size().parameters);
  return {{"parameters", "Parameters", {{"total", "total", elements}}},
          {"inference_memory", "Memory, f32", {{"weights", "weights", 4 * elements, InfoUnit::bytes}}}};
}

std::vector<std::string> ModelSpec::config_notes(const std::string&, const std::string&) const { return {}; }

std::string ModelSpec::config_json_like(const std::string&, const std::string&, std::optional<DType>) const {
  return config_json();
}

Folder ModelSpec::folder() const { return Folder(*this); }

std::vector<std::string> differing_settings(const ModelSpec& expected, const ModelSpec& found) {
  const std::vector<ModelSetting> then = expected.settings(), now = found.settings();
  const auto named = [](const std::vector<ModelSetting>& list, const std::string& name) {
    const auto at = std::ranges::find(list, name, &ModelSetting::name);
    return at == list.end() ? nullptr : &*at;
  };
  std::vector<std::string> lines;
  const auto compare = [&](const std::string& name, const std::string& a, const std::string& b) {
    if (a != b) lines.push_back("model." + name + " = " + a + ", found " + b);
  };
  // Families differ in which settings they have.
  if (expected.model_type() != found.model_type()) compare("model_type", expected.model_type(), found.model_type());
  for (const ModelSetting& s : then) {
    const ModelSetting* other = named(now, s.name);
    const bool in_use = s.in_use || !other || other->in_use;
    if (s.name != "model_type" && in_use) compare(s.name, s.value, other ? other->value : "none");
  }
  for (const ModelSetting& s : now)
    if (s.name != "model_type" && !named(then, s.name)) compare(s.name, "none", s.value);
  return lines;
}

}  // namespace braid::models
