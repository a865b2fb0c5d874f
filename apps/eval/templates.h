// Templates: which fields of a data set's lines are the context, the choices and the right one. Those of configs/eval
// are part of the program; others are files of the same form.
#pragma once
#include <string>
#include <vector>

#include "braid/models/eval/documents.h"

namespace braid::apps {

struct TemplateText {
  std::string name, toml;
};
const std::vector<TemplateText>& built_in_templates();       // made from configs/eval by apps/CMakeLists.txt
const TemplateText* find_template(const std::string& name);  // of these, or null

// Error(setting) names the file, the line and the nearest key of an unknown one.
models::eval::TaskTemplate parse_template(const TemplateText& text);

}  // namespace braid::apps
