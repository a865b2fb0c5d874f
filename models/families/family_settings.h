// The common parts of families whose table is a list of Setting: settings from texts, checks, the list of a ModelSpec,
// presets. DCMHA's own rows: composition_settings.h.
#pragma once
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "braid/models/model_spec.h"
#include "braid/models/settings.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models {

// Sets those of the table that are named; `compose`, which sets others, first. Error(setting) names what is unknown,
// with the nearest name, or not allowed.
void apply_settings(const std::vector<Setting>& table, SettingTexts settings, const std::string& model_type);
// Every value obeys its rule. Error(setting).
void check_rules(const std::vector<Setting>& table);
// Error(setting): "bad KEY: expected EXPECTED, found FOUND[; ADVICE]"
void need_setting(bool ok, const std::string& key, const std::string& expected, const std::string& found,
                  const std::string& advice = "");

// muP (training/mup.h), under which heads keep their width: the row of the base's width, 0 for no muP, its check, and
// the model of that width of a family with sizes of these names.
Setting mup_key(int64_t& base_width);
void check_mup_base(int64_t base_width, int64_t width, int64_t heads);  // Error(setting)
template <class Config>
Config mup_base_of(const Config& c) {
  Config base = c;
  base.mup_base_width = 0;
  base.hidden_size = c.mup_base_width;
  base.num_attention_heads = c.num_attention_heads * c.mup_base_width / c.hidden_size;
  base.intermediate_size = std::max<int64_t>(1, c.intermediate_size * c.mup_base_width / c.hidden_size);
  return base;
}

// ModelSpec::settings(): model_type, then the table. in_use, may_change: of the setting of a name.
using OfSetting = std::function<bool(const std::string& name)>;
std::vector<ModelSetting> model_settings(const std::string& model_type, const std::vector<Setting>& table,
                                         const OfSetting& in_use, const OfSetting& may_change);

// The named configurations of a family: plain ones and, behind them, each with DCMHA as dc-NAME.
template <class Config>
class FamilyPresets {
 public:
  explicit FamilyPresets(const std::vector<std::pair<std::string, Config>>& plain) : table_(plain) {
    for (const auto& [name, config] : plain) {
      table_.emplace_back("dc-" + name, config);
      table_.back().second.use_dcmha = true;
    }
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, config] : table_) names.push_back(name);
    return names;
  }
  // Error(setting) with the nearest name.
  Config at(const std::string& name) const {
    for (const auto& [preset, config] : table_)
      if (preset == name) return config;
    fail(ErrorKind::setting,
         "unknown model preset '" + detail::preview(name) + "'" + detail::did_you_mean(name, names()));
  }

 private:
  std::vector<std::pair<std::string, Config>> table_;
};

}  // namespace braid::models
