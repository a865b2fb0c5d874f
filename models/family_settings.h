// Settings of a family from texts, and DCMHA's own among them, for families whose table is a list of Setting.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "braid/models/model_spec.h"
#include "braid/models/settings.h"

namespace braid::models {

// Sets those of the table that are named; `compose`, which sets others, first. Error(setting) names what is unknown,
// with the nearest name, or not allowed.
void apply_settings(const std::vector<Setting>& table, SettingTexts settings, const std::string& model_type);
// Every value obeys its rule. Error(setting).
void check_rules(const std::vector<Setting>& table);
// Error(setting): "bad KEY: expected EXPECTED, found FOUND"
void need_setting(bool ok, const std::string& key, const std::string& expected, const std::string& found);

}  // namespace braid::models
