#include "braid/models/cost/size.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "braid/nn/layers/embedding.h"

namespace braid::models {

ModelSize model_size(const ModelSpec& spec) {
  const std::unique_ptr<Model> model = spec.make_shape_only();
  std::set<std::string> tables;
  Shape table;
  nn::each_module(*model, [&](const std::string& name, nn::Module& module) {
    if (const auto* embedding = dynamic_cast<const nn::Embedding*>(&module)) {
      tables.insert(name + ".weight");
      table = embedding->weight().shape();
    }
  });
  ModelSize size;
  std::set<std::string> blocks;
  for (const auto& [name, value] : nn::parameters(*model)) {
    const int64_t n = value.numel();
    check(!__builtin_add_overflow(size.parameters, n, &size.parameters), ErrorKind::setting,
          "the model is too large: its number of parameters does not fit 63 bits");
    const size_t layers = name.find("layers.");
    if (layers != name.npos) blocks.insert(name.substr(0, name.find('.', layers + 7)));
    const bool of_vocabulary = tables.contains(name) || (layers == name.npos && value.shape() == table);
    if (!of_vocabulary) size.non_embedding += n;
    if (name.find(".dyn_") != name.npos) (name.ends_with("_proj.w") ? size.static_proj : size.dynamic) += n;
  }
  size.layers = std::ssize(blocks);
  return size;
}

// The count is linear in the width; with mgate the width stays a multiple of the number of gates.
SettingTexts matching_settings(const ModelSpec& spec, int64_t parameters) {
  const char* const width = "intermediate_size";
  const std::vector<ModelSetting> settings = spec.settings();
  const auto value = [&](const std::string& name) {
    const auto at = std::ranges::find(settings, name, &ModelSetting::name);
    return at == settings.end() ? std::string() : at->value;
  };
  if (value(width).empty()) return {};
  const int64_t F = std::stoll(value(width)), unit = value("mgate") == "true" ? std::stoll(value("mgate_dim")) : 1;
  const auto total = [&](int64_t hidden) {
    return model_size(*spec.with({{width, std::to_string(hidden)}})).parameters;
  };
  const int64_t now = total(F), slope = total(F + unit) - now;
  const double units = std::round(static_cast<double>(parameters - now) / static_cast<double>(slope));
  return {{width, std::to_string(std::max(unit, F + static_cast<int64_t>(units) * unit))}};
}

}  // namespace braid::models
