#include "braid/models/families/composition_settings.h"

#include <cmath>

#include "braid/models/families/layer_pattern.h"

namespace braid::models {

nn::CompositionOptions CompositionSettings::composition(double mup_ratio) const {
  nn::CompositionOptions o{.rank = rank,
                           .pre = pre_compose,
                           .post = post_compose,
                           .query_side = query_side,
                           .key_side = key_side,
                           .static_term = static_proj,
                           .identity_start = compose_init == "identity"};
  for (nn::Init* init : {&o.dw1, &o.dd, &o.base}) init->value /= std::sqrt(mup_ratio);
  o.qkw.value /= mup_ratio * std::sqrt(mup_ratio);
  return o;
}

std::vector<bool> CompositionSettings::composing(int64_t layers) const {
  return layers_of("compose_layers", compose_layers, std::vector<int64_t>(static_cast<size_t>(layers), 0));
}

const std::vector<ComposePreset>& composition_presets() {
  static const std::vector<ComposePreset> presets = compose_presets();
  return presets;
}

std::vector<Setting> composition_keys(CompositionSettings& s, const std::string& query_help,
                                      const std::string& key_help) {
  return {
      {"compose", "parts of DCMHA by name: the settings that say which exist; none = plain attention",
       compose_rule(composition_presets()),
       [&s] {
         CompositionSettings copy = s;
         return compose_name(composition_presets(), composition_keys(copy));
       },
       [&s](const Value& value) {
         set_compose(composition_presets(), composition_keys(s), std::get<std::string>(value));
       }},
      {"use_dcmha", &s.use_dcmha, "dynamic composition of heads; false = plain attention"},
      {"compose_init", &s.compose_init, "first weights of Compose; identity: the model starts as if it had none",
       one_of({"random", "identity"})},
      {"profile.rank", &s.rank, "rank of each dynamic term", between(0, 1024)},
      {"profile.pre_compose", &s.pre_compose, "compose before softmax"},
      {"profile.post_compose", &s.post_compose, "compose after softmax"},
      {"profile.query_side", &s.query_side, query_help},
      {"profile.key_side", &s.key_side, key_help},
      {"profile.static_proj", &s.static_proj, "static mixing of heads"},
      {"compose_layers", &s.compose_layers, "layers with DCMHA; the others have plain attention", layer_pattern_rule()},
  };
}

bool composition_in_use(const CompositionSettings& s, const std::string& name) {
  if (name == "compose_init" || name == "compose_layers") return s.mixes_heads();
  if (name == "profile.rank") return s.use_dcmha && !s.composition().active_branches().empty();
  return s.use_dcmha || !name.starts_with("profile.");
}

bool composition_may_change(const std::string& name) {
  return name == "compose" || name == "use_dcmha" || name == "compose_init" || name == "compose_layers";
}

}  // namespace braid::models
