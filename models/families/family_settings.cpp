#include "braid/models/families/family_settings.h"

#include <numeric>

namespace braid::models {

void need_setting(bool ok, const std::string& key, const std::string& expected, const std::string& found,
                  const std::string& advice) {
  check(ok, ErrorKind::setting, [&] {
    return "bad " + key + ": expected " + expected + ", found " + found + (advice.empty() ? "" : "; " + advice);
  });
}

Setting mup_key(int64_t& base_width) {
  return {"mup_base_width", &base_width,
          "muP: first weights and learning rates follow the width, so that a rate found at this one serves; null = "
          "neither does",
          between(1, 1 << 20), 0};
}

void check_mup_base(int64_t base_width, int64_t width, int64_t heads) {
  const int64_t of_head = std::max<int64_t>(1, width / std::gcd(width, heads));
  need_setting(base_width % of_head == 0, "mup_base_width",
               str("a multiple of ", of_head, ", since the heads of both widths are equally wide"),
               std::to_string(base_width));
}

void check_rules(const std::vector<Setting>& table) {
  for (const Setting& key : table)
    check(allows(key.rule, key.get()), ErrorKind::setting,
          [&] { return bad_value(key.name, key.rule, value_text(key.get())); });
}

void apply_settings(const std::vector<Setting>& table, SettingTexts settings, const std::string& model_type) {
  std::stable_partition(settings.begin(), settings.end(),
                        [](const auto& setting) { return setting.first == "compose"; });
  std::vector<std::string> names;
  for (const Setting& key : table) names.push_back(key.name);
  for (const auto& [name, text] : settings) {
    if (name == "model_type") continue;
    const Setting* key = find_setting(table, name);
    check(key != nullptr, ErrorKind::setting, [&, &name = name] {
      return "unknown model key '" + detail::preview(name) + "'" + detail::did_you_mean(name, names) +
             " of a model of type " + model_type;
    });
    const std::optional<Value> value = parse_value(key->rule, detail::trim(text));
    check(value && assign(*key, *value), ErrorKind::setting, [&, &name = name, &text = text] {
      return bad_value("model key " + name, key->rule, "'" + detail::preview(text) + "'", text);
    });
  }
}

std::vector<ModelSetting> model_settings(const std::string& model_type, const std::vector<Setting>& table,
                                         const OfSetting& in_use, const OfSetting& may_change) {
  std::vector<ModelSetting> list = {{"model_type", model_type, "published family", true, one_of({model_type})}};
  for (const Setting& key : table)
    list.push_back({key.name, value_text(key.get()), key.help, in_use(key.name), key.rule, may_change(key.name)});
  return list;
}

}  // namespace braid::models
