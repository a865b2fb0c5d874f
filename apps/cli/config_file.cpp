#include "apps/cli/config_file.h"

#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <algorithm>

#include "apps/cli/text.h"
#include "braid/tensor/error.h"

namespace braid::apps {
namespace {

constexpr int kMaxLevels = 32;  // of a key; no setting has more than three. Tables are walked and freed by recursion

[[noreturn]] void too_deep(const std::string& name, int64_t line) {
  fail(ErrorKind::setting,
       str("cannot read ", name, " line ", line, ": expected keys of at most ", kMaxLevels, " levels, found more"));
}

// The first character behind the TOML text that begins at `begin`, or the end of its line where it is not closed.
size_t end_of_text(const std::string& text, size_t begin) {
  const char quote = text[begin];
  const bool lines = text.compare(begin, 3, std::string(3, quote)) == 0;
  const std::string closing(lines ? 3 : 1, quote);
  size_t i = begin + closing.size();
  while (i < text.size() && text.compare(i, closing.size(), closing) != 0) {
    if (text[i] == '\n' && !lines) return i;
    i += quote == '"' && text[i] == '\\' ? 2 : 1;
  }
  i = std::min(i + closing.size(), text.size());
  while (lines && i < text.size() && text[i] == quote) ++i;  // """a"""" ends with a quote of its own
  return i;
}

// Error(setting) when a key has too many levels, before the library makes a table of each: counts the dots between the
// characters that may stand beside a key, outside comments and texts.
void check_levels(const std::string& text, const std::string& name) {
  int64_t line = 1;
  int dots = 0;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    size_t next = i + 1;
    if (c == '#') next = std::min(text.find('\n', i), text.size());
    if (c == '"' || c == '\'') next = end_of_text(text, i);
    line += std::count(text.begin() + static_cast<std::ptrdiff_t>(i), text.begin() + static_cast<std::ptrdiff_t>(next),
                       '\n');
    if (c == '.') ++dots;
    if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos) dots = 0;
    if (dots >= kMaxLevels) too_deep(name, line);
    i = next;
  }
}

Value scalar(const toml::node& node, std::string& problem) {
  if (const auto* v = node.as_boolean()) return v->get();
  if (const auto* v = node.as_integer()) return v->get();
  if (const auto* v = node.as_floating_point()) return v->get();
  if (const auto* v = node.as_string()) {
    if (v->get().find('\0') != std::string::npos) problem = "expected a string without U+0000, where a path would end";
    return v->get();
  }
  problem = str("expected a number, a string, true, false or a list, found a ", node.is_table() ? "table inside a list"
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
  if (const std::optional<Value> value = models::list_value(items)) return *value;
  const auto other = std::ranges::find_if(items, [](const Value& item) {
    return !std::holds_alternative<int64_t>(item) && !std::holds_alternative<std::string>(item);
  });
  problem = "expected a list of only integers or only strings, found ";
  if (other == items.end()) {
    problem += "a mixed one";
    return false;
  }
  std::string text = models::value_text(*other);
  const bool number = std::holds_alternative<double>(*other);
  if (number && text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";  // 1 is an integer in TOML
  problem += text + " in it";
  if (number) problem += "; as a string it is \"" + text + "\"";
  return false;
}

void flatten(const toml::table& table, const std::string& prefix, int levels, const std::string& file,
             std::vector<ConfigEntry>& entries) {
  for (const auto& [name, node] : table) {
    const std::string key = str(prefix, name.str());
    if (const auto* inner = node.as_table()) {
      if (levels >= kMaxLevels) too_deep(file, static_cast<int64_t>(node.source().begin.line));
      flatten(*inner, key + ".", levels + 1, file, entries);
      if (!inner->empty()) continue;
    }
    ConfigEntry entry{.key = key, .value = false, .line = static_cast<int64_t>(node.source().begin.line)};
    if (node.is_table()) {
      entry.empty_section = true;
      entries.push_back(std::move(entry));
      continue;
    }
    entry.value = node.is_array() ? list(*node.as_array(), entry.problem) : scalar(node, entry.problem);
    entries.push_back(std::move(entry));
  }
}

}  // namespace

std::vector<ConfigEntry> parse_config(const std::string& text, const std::string& name) {
  check_levels(text, name);
  std::vector<ConfigEntry> entries;
  std::string problem;
  try {
    flatten(toml::parse(text), "", 1, name, entries);
  } catch (const toml::parse_error& error) {
    problem = str(" line ", error.source().begin.line, ": expected TOML; ");
    problem += preview(error.description(), 200);
  }
  check(problem.empty(), ErrorKind::setting, [&] { return "cannot read " + name + problem; });
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.line < b.line; });
  return entries;
}

}  // namespace braid::apps
