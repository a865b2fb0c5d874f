// A folder that holds one attention and its inputs instead of a model ("model_type": "attention"), for `braid dump`.
#pragma once
#include <optional>
#include <string>

#include "braid/autograd/attention.h"
#include "braid/models/model_spec.h"

namespace braid::models {

// Groups and mask that config.json of such a folder describes, with these settings instead of its own; none when it
// describes a model. Error names file and key.
std::optional<DcmhaOptions> read_attention_options(const std::string& config_json, const std::string& file_name,
                                                   const SettingTexts& settings);

}  // namespace braid::models
