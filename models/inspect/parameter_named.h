// Parameters and sizes of a model that the analysis reads by their names.
#pragma once
#include <optional>
#include <string>

#include "braid/autograd/dcmha.h"
#include "braid/models/language_model.h"

namespace braid::models {

// "layers.<layer>.<rest>"
std::string layer_name(int64_t layer, const std::string& rest);
// The parameter, without history; an empty handle when the model has none of that name.
Tensor parameter_named(const LanguageModel& model, const std::string& name);
// A setting of the model's configuration as a number; none: it has no such setting, or it is no number.
std::optional<double> setting_of(const LanguageModel& model, const std::string& name);
// The same as text; "": it has no such setting.
std::string setting_text(const LanguageModel& model, const std::string& name);
// d, N and Nkv: settings of the same names in configurations. Error(misuse) for models without.
int64_t head_dim_of(const LanguageModel& model);
int64_t heads_of(const LanguageModel& model);
int64_t kv_heads_of(const LanguageModel& model);
// The scale and the softcap of the scores, from score_dim and attention_softcap.
SdpaOptions score_options_of(const LanguageModel& model);

}  // namespace braid::models
