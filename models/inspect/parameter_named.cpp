#include "braid/models/inspect/parameter_named.h"

#include <cmath>

#include "braid/models/model_spec.h"
#include "braid/tensor/base/strings.h"

namespace braid::models {

namespace {

int64_t whole(const LanguageModel& model, const std::string& name) {
  const std::optional<double> value = setting_of(model, name);
  check(value && *value >= 1, "analysis",
        [&] { return "the configuration of a " + model.spec()->model_type() + " has no " + name; });
  return static_cast<int64_t>(*value);
}

}  // namespace

std::string layer_name(int64_t layer, const std::string& rest) { return str("layers.", layer, ".", rest); }

Tensor parameter_named(const LanguageModel& model, const std::string& name) {
  for (const nn::NamedTensor& p : nn::parameters(model))
    if (p.name == name) return p.value.detach();
  return {};
}

std::string setting_text(const LanguageModel& model, const std::string& name) {
  for (const ModelSetting& setting : model.spec()->settings())
    if (setting.name == name) return setting.value;
  return "";
}

std::optional<double> setting_of(const LanguageModel& model, const std::string& name) {
  return detail::parse_float(setting_text(model, name));
}

int64_t heads_of(const LanguageModel& model) { return whole(model, "n_head"); }
int64_t head_dim_of(const LanguageModel& model) { return whole(model, "head_dim"); }
int64_t kv_heads_of(const LanguageModel& model) {
  const std::optional<double> value = setting_of(model, "n_kv_head");
  return value && *value >= 1 ? static_cast<int64_t>(*value) : heads_of(model);
}

SdpaOptions score_options_of(const LanguageModel& model) {
  SdpaOptions options;
  const double score_dim = setting_of(model, "score_dim").value_or(0);
  if (score_dim > 0) options.scale = 1 / std::sqrt(score_dim);
  options.softcap = setting_of(model, "attention_softcap").value_or(0);
  return options;
}

}  // namespace braid::models
