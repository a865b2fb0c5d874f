#include "apps/cli/config_file.h"

#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <algorithm>

#include "apps/cli/text.h"
#include "braid/tensor/error.h"

namespace braid::apps {
namespace {

Value scalar(const toml::node& node, std::string& problem) {
  if (const auto* v = node.as_boolean()) return v->get();
  if (const auto* v = node.as_integer()) return v->get();
  if (const auto* v = node.as_floating_point()) return v->get();
  if (const auto* v = node.as_string()) return v->get();
  problem = "expected a number, a string, true, false or a list, found a " +
            std::string(node.is_table()   ? "table inside a list"
                        : node.is_array() ? "list inside a list"
                                          : "date or time");
  return false;
}

Value list(const toml::array& array, std::string& problem) {
  std::vector<Value> items;
  for (const toml::node& node : array) {
    items.push_back(scalar(node, problem));
    if (!problem.empty()) return false;
  }
  const std::optional<Value> value = models::list_value(items);
  if (!value) problem = "expected a list of only whole numbers or only strings, found a mixed one";
  return value.value_or(false);
}

void flatten(const toml::table& table, const std::string& prefix, std::vector<ConfigEntry>& entries) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    if (const auto* inner = node.as_table()) {
      flatten(*inner, key + ".", entries);
      continue;
    }
    ConfigEntry entry{.key = key, .value = false, .line = static_cast<int64_t>(node.source().begin.line)};
    entry.value = node.is_array() ? list(*node.as_array(), entry.problem) : scalar(node, entry.problem);
    entries.push_back(std::move(entry));
  }
}

}  // namespace

std::vector<ConfigEntry> parse_config(const std::string& text, const std::string& name) {
  std::vector<ConfigEntry> entries;
  std::string problem;
  try {
    flatten(toml::parse(text), "", entries);
  } catch (const toml::parse_error& error) {
    problem = " line " + std::to_string(error.source().begin.line) + ": expected TOML; ";
    problem += preview(error.description(), 200);
  }
  check(problem.empty(), ErrorKind::setting, [&] { return "cannot read " + name + problem; });
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.line < b.line; });
  return entries;
}

}  // namespace braid::apps
