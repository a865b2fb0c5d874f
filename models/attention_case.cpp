#include "braid/models/attention_case.h"

#include "braid/models/dcformer/config.h"

namespace braid::models {

std::optional<DcmhaOptions> read_attention_options(const std::string& config_json, const std::string& file_name,
                                                   const SettingTexts& settings) {
  if (!is_attention_case(config_json, file_name)) return std::nullopt;
  const AttentionCase attention = read_attention_case(config_json, file_name);
  const DcformerConfig config = configure(attention.config, settings);
  DcmhaOptions options;
  options.groups = config.profile.num_groups;
  options.mask = {config.profile.causal, config.keys_of_layer(0, false), attention.q_offset};
  return options;
}

}  // namespace braid::models
