#include "braid/models/model_spec.h"

#include <algorithm>

#include "braid/models/cost/size.h"
#include "braid/models/cost/trace.h"
#include "braid/models/folders/folder.h"
#include "braid/nn/init.h"
#include "braid/tensor/error.h"

namespace braid::models {

std::unique_ptr<Model> ModelSpec::make_shape_only(const dist::ProcessMesh& mesh) const {
  const nn::ShapeOnlyScope no_memory;
  return make({}, mesh);
}

std::vector<nn::NamedTensor> ModelSpec::parameters() const { return nn::parameters(*make_shape_only()); }

std::unique_ptr<const ModelSpec> ModelSpec::extrapolated(int64_t longest) const {
  fail(ErrorKind::setting,
       str("a model of type ", model_type(), " has no sequences of ", longest,
           " tokens: expected rotary positions, which are computed, or at most ", max_sequence_length(), " tokens"));
}

std::vector<InfoSection> ModelSpec::info(const InfoRequest& request) const {
  const auto elements = static_cast<double>(model_size(*this).parameters), batch = static_cast<double>(request.batch);
  const double forward = batch * forward_flops(*this, request.seq_len).total();
  return {{"parameters", "Parameters", {{"total", "total", elements}}},
          {"flops",
           request.batch == 1 ? "FLOPs of a sample" : str("FLOPs of ", request.batch, " samples"),
           {{"forward", "forward", forward, InfoUnit::flops}, {"training", "training", 3 * forward, InfoUnit::flops}}},
          {"inference_memory", "Memory, f32", {{"weights", "weights", 4 * elements, InfoUnit::bytes}}}};
}

std::vector<std::string> ModelSpec::config_notes(const std::string&, const std::string&) const { return {}; }

std::string ModelSpec::config_json_like(const std::string&, const std::string&, std::optional<DType>) const {
  return config_json();
}

ModelSpec::PythonCode ModelSpec::python_code() const {
  fail(ErrorKind::setting, "a model of type " + model_type() + " has no code for the package transformers");
}

Folder ModelSpec::folder() const { return Folder(*this); }

std::vector<SettingDifference> setting_differences(const ModelSpec& expected, const ModelSpec& found) {
  const std::vector<ModelSetting> then = expected.settings(), now = found.settings();
  const auto named = [](const std::vector<ModelSetting>& list, const std::string& name) {
    const auto at = std::ranges::find(list, name, &ModelSetting::name);
    return at == list.end() ? nullptr : &*at;
  };
  std::vector<SettingDifference> list;
  const auto compare = [&](const std::string& name, const std::string& a, const std::string& b, bool of_context) {
    if (a != b) list.push_back({name, a, b, of_context});
  };
  // Families differ in which settings they have.
  if (expected.model_type() != found.model_type())
    compare("model_type", expected.model_type(), found.model_type(), false);
  for (const ModelSetting& s : then) {
    const ModelSetting* other = named(now, s.name);
    const bool in_use = s.in_use || !other || other->in_use;
    if (s.name != "model_type" && in_use) compare(s.name, s.value, other ? other->value : "none", s.of_context);
  }
  for (const ModelSetting& s : now)
    if (s.name != "model_type" && !named(then, s.name)) compare(s.name, "none", s.value, false);
  return list;
}

std::vector<std::string> differing_settings(const ModelSpec& expected, const ModelSpec& found) {
  std::vector<std::string> lines;
  for (const SettingDifference& d : setting_differences(expected, found)) lines.push_back(d.text());
  return lines;
}

}  // namespace braid::models
