#include "braid/models/model_spec.h"

namespace braid::models {

std::vector<std::string> differing_settings(const ModelSpec& expected, const ModelSpec& found) {
  const std::vector<ModelSetting> then = expected.settings(), now = found.settings();
  const auto text = [](const std::vector<ModelSetting>& list, const std::string& name) -> std::string {
    for (const ModelSetting& s : list)
      if (s.name == name) return s.value;
    return "none";
  };
  std::vector<std::string> lines;
  const auto compare = [&](const std::string& name, const std::string& a, const std::string& b) {
    if (a != b) lines.push_back("model." + name + " = " + a + ", found " + b);
  };
  // Families differ in which settings they have.
  if (expected.model_type() != found.model_type()) compare("model_type", expected.model_type(), found.model_type());
  for (const ModelSetting& s : then)
    if (s.name != "model_type") compare(s.name, s.value, text(now, s.name));
  for (const ModelSetting& s : now)
    if (s.name != "model_type" && text(then, s.name) == "none") compare(s.name, "none", s.value);
  return lines;
}

}  // namespace braid::models
