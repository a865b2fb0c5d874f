// Named parts of DCMHA for ablations: the setting `compose` of every family that has DCMHA. A name stands for values of
// other settings, which may still be set beside it.
//
//   full                  static mixing, query-wise and key-wise terms of rank 2, gates; before and after the softmax
//   no-static             the same without static mixing: the published DCFormer and DCPythia models
//   talking-heads         static mixing alone (Shazeer et al., arXiv 2003.02436)
//   query-wise, key-wise  the dynamic terms and gates from the query, or the key, alone; no static mixing
//   pre-only, post-only   full before, or after, the softmax, nothing on the other side
//   gates-only            the gates alone: no low-rank terms, no static mixing
//   rank-1, rank-4        full, with dynamic terms of this rank
//   lightweight           dynamic terms of rank 1 after the softmax, no gates, in the last layer (compose_layers)
//   groups-2, groups-4    full, within this many groups of heads
//   local-only            full, and every layer attends to its window alone (window_type=L)
//   none                  plain attention
#pragma once
#include <string>
#include <vector>

#include "braid/models/model_spec.h"
#include "braid/models/settings.h"

namespace braid::models {

struct ComposePreset {
  std::string name;
  SettingTexts keys;  // that it fixes
};
// The presets of a family with DCMHA's settings, with or without groups of heads (profile.num_groups) and windows
// (window_type, and with them layers and gates), and without "none".
std::vector<ComposePreset> compose_presets(bool groups = false, bool windows = false);
// The rule of the setting: the names, "none", and "custom", which stands for all other values.
ValueRule compose_rule(const std::vector<ComposePreset>& presets);
// Sets what the name fixes; "custom" changes nothing.
void set_compose(const std::vector<ComposePreset>& presets, const std::vector<Setting>& table, const std::string& name);
// The preset whose values are all set, "none" without DCMHA, else "custom".
std::string compose_name(const std::vector<ComposePreset>& presets, const std::vector<Setting>& table);

}  // namespace braid::models
