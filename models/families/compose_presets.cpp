#include "braid/models/families/compose_presets.h"

#include <algorithm>

namespace braid::models {

namespace {

struct Parts {
  const char* name;
  bool pre, post, query, key, base;
  int rank, groups;
  bool local;
  bool light = false;  // without gates, in the last layer
};

constexpr Parts kPresets[] = {
    // Before "full", which holds of it too.
    {"local-only", true, true, true, true, true, 2, 1, true},
    {"full", true, true, true, true, true, 2, 1, false},
    {"no-static", true, true, true, true, false, 2, 1, false},
    {"talking-heads", true, true, false, false, true, 2, 1, false},
    {"query-wise", true, true, true, false, false, 2, 1, false},
    {"key-wise", true, true, false, true, false, 2, 1, false},
    {"pre-only", true, false, true, true, true, 2, 1, false},
    {"post-only", false, true, true, true, true, 2, 1, false},
    {"gates-only", true, true, true, true, false, 0, 1, false},
    {"rank-1", true, true, true, true, true, 1, 1, false},
    {"rank-4", true, true, true, true, true, 4, 1, false},
    {"lightweight", false, true, true, true, false, 1, 1, false, true},
    {"groups-2", true, true, true, true, true, 2, 2, false},
    {"groups-4", true, true, true, true, true, 2, 4, false},
};

SettingTexts keys_of(const Parts& p, bool groups, bool windows) {
  const auto text = [](bool on) { return std::string(on ? "true" : "false"); };
  SettingTexts keys = {{"use_dcmha", "true"},
                       {"profile.pre_compose", text(p.pre)},
                       {"profile.post_compose", text(p.post)},
                       {"profile.query_side", text(p.query)},
                       {"profile.key_side", text(p.key)},
                       {"profile.static_proj", text(p.base)},
                       {"profile.rank", std::to_string(p.rank)}};
  if (groups) keys.emplace_back("profile.num_groups", std::to_string(p.groups));
  if (p.local) keys.emplace_back("window_type", "L");
  if (windows) keys.emplace_back("profile.gates", text(!p.light));
  if (p.light) keys.emplace_back("compose_layers", "last:1");
  return keys;
}

}  // namespace

std::vector<ComposePreset> compose_presets(bool groups, bool windows) {
  std::vector<ComposePreset> presets;
  for (const Parts& parts : kPresets)
    if ((groups || parts.groups == 1) && (windows || !(parts.local || parts.light)))
      presets.push_back({parts.name, keys_of(parts, groups, windows)});
  return presets;
}

ValueRule compose_rule(const std::vector<ComposePreset>& presets) {
  std::vector<std::string> names;
  for (const ComposePreset& preset : presets) names.push_back(preset.name);
  names.insert(names.end(), {"none", "custom"});
  return one_of(names);
}

void set_compose(const std::vector<ComposePreset>& presets, const std::vector<Setting>& table,
                 const std::string& name) {
  const auto set = [&](const std::string& key, const std::string& text) {
    const Setting* setting = find_setting(table, key);
    assign(*setting, parse_value(setting->rule, text).value());
  };
  if (name == "none") set("use_dcmha", "false");
  for (const ComposePreset& preset : presets) {
    if (preset.name != name) continue;
    for (const auto& [key, text] : preset.keys) set(key, text);
  }
}

std::string compose_name(const std::vector<ComposePreset>& presets, const std::vector<Setting>& table) {
  const auto holds = [&](const std::string& key, const std::string& text) {
    return value_text(find_setting(table, key)->get()) == text;
  };
  if (holds("use_dcmha", "false")) return "none";
  for (const ComposePreset& preset : presets)
    if (std::ranges::all_of(preset.keys, [&](const auto& key) { return holds(key.first, key.second); }))
      return preset.name;
  return "custom";
}

}  // namespace braid::models
