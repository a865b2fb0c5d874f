// DCMHA's settings, under the same keys in every family: which parts it has and how they are initialised. For families
// whose heads form one group; DCFormer has more settings, in a table of its own (dcformer/config_keys.h).
#pragma once
#include <string>
#include <vector>

#include "braid/models/families/compose_presets.h"
#include "braid/models/settings.h"
#include "braid/nn/attention/composition.h"

namespace braid::models {

// A part of the configuration of such a family, which derives from it.
struct CompositionSettings {
  bool use_dcmha = false;
  std::string compose_init = "random";  // or identity
  int64_t rank = 2;                     // of the dynamic terms
  bool pre_compose = true, post_compose = true, query_side = true, key_side = true, static_proj = true;
  std::string compose_layers = "all";  // that have DCMHA: layer_pattern.h

  bool operator==(const CompositionSettings&) const = default;
  // mup_ratio: m of training/mup.h, by which first weights become smaller.
  nn::CompositionOptions composition(double mup_ratio = 1) const;
  // Whether this one of a stack's layers, which have no windows, has DCMHA.
  bool composes(int64_t layer, int64_t layers) const { return use_dcmha && composing(layers).at(size_t(layer)); }
  // Each of the layers. Error(setting) where compose_layers reaches beyond them.
  std::vector<bool> composing(int64_t layers) const;
  bool mixes_heads() const { return use_dcmha && composition().mixes_heads(); }
};

// The rows of a family's table, `compose` first; they point into `settings`. query_help, key_help: the help texts of
// query_side and key_side.
std::vector<Setting> composition_keys(CompositionSettings& settings,
                                      const std::string& query_help = "weights from the query",
                                      const std::string& key_help = "weights from the key");
// Whether the setting has an effect with these switches. True for names that are not DCMHA's.
bool composition_in_use(const CompositionSettings& settings, const std::string& name);
// Whether fine-tuning may change the setting: it affects how new weights start only.
bool composition_may_change(const std::string& name);
// The names of `compose`: those without groups and windows.
const std::vector<ComposePreset>& composition_presets();

}  // namespace braid::models
