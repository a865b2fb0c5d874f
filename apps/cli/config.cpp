#include "apps/cli/config.h"

#include <algorithm>

#include "apps/cli/config_file.h"
#include "apps/cli/text.h"
#include "braid/tensor/error.h"
#include "braid/tensor/io/reader.h"

namespace braid::apps {
namespace {

std::vector<std::string> all_keys(const Schema& schema) {
  std::vector<std::string> keys;
  for (const Setting& setting : schema.settings) keys.push_back(setting.name);
  for (const OpenTable& table : schema.open)
    for (const std::string& key : table.keys) keys.push_back(table.prefix + "." + key);
  return keys;
}

// `where` is "run.toml line 3" or "the command line".
void set(const Schema& schema, const std::string& key, const Value& value, const std::string& where) {
  if (const Setting* setting = models::find_setting(schema.settings, key)) {
    if (assign(*setting, value)) return;
    const auto* text = std::get_if<std::string>(&value);
    fail(ErrorKind::setting,
         models::bad_value(key + " in " + where, setting->rule, preview(toml_text(value)), text ? *text : ""));
  }
  for (const OpenTable& table : schema.open) {
    if (!key.starts_with(table.prefix + ".")) continue;
    const std::string name = key.substr(table.prefix.size() + 1);
    if (std::find(table.keys.begin(), table.keys.end(), name) == table.keys.end()) continue;
    (*table.values)[name] = value;
    return;
  }
  const std::vector<std::string> keys = all_keys(schema);
  const bool section = std::any_of(keys.begin(), keys.end(), [&](const auto& k) { return k.starts_with(key + "."); });
  std::string advice =
      section ? "; it is a section: write '[" + key + "]' and its keys below" : did_you_mean(key, keys);
  if (advice.empty()) advice = "; " + schema.command + " --print-config lists all keys";
  fail(ErrorKind::setting, "unknown key '" + preview(key) + "' in " + where + advice);
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    constexpr char hex[] = "0123456789ABCDEF";
    if (c == '"' || c == '\\')
      result += '\\', result += c;
    else if (c == '\n')
      result += "\\n";
    else if (c == '\t')
      result += "\\t";
    else if (byte < 0x20 || byte == 0x7F)
      result += std::string("\\u00") + hex[byte >> 4] + hex[byte & 15];
    else
      result += c;
  }
  return result + "\"";
}

}  // namespace

std::string toml_text(const Value& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) return quoted(v);
        if constexpr (std::is_same_v<T, double>) {
          const std::string text = shortest(v);
          return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
        }
        if constexpr (std::is_same_v<T, std::vector<int64_t>> || std::is_same_v<T, std::vector<std::string>>) {
          std::vector<std::string> items;
          for (const auto& item : v) items.push_back(toml_text(item));
          return "[" + join(items, ", ") + "]";
        }
        return models::value_text(v);
      },
      value);
}

void load_config(const Schema& schema, const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  const auto name_now = [&](const std::string& key) {
    const auto at = schema.renamed.find(key);
    return at == schema.renamed.end() ? key : at->second;
  };
  if (!file.empty()) {
    constexpr int64_t limit = 1 << 20;  // a configuration of more than a megabyte is some other file
    for (const ConfigEntry& entry : parse_config(io::read_text_file(file.string(), limit), file.string())) {
      const std::string where = file.string() + " line " + std::to_string(entry.line);
      check(entry.problem.empty(), ErrorKind::setting,
            [&] { return "bad value for " + preview(entry.key) + " in " + where + ": " + entry.problem; });
      set(schema, name_now(entry.key), entry.value, where);
    }
  }
  for (const std::string& text : overrides) {
    const size_t equals = text.find('=');
    check(equals != std::string::npos && equals > 0, ErrorKind::setting,
          [&] { return "bad override '" + preview(text) + "': expected key=value"; });
    check(valid_utf8(text), ErrorKind::setting,
          [&] { return "bad override '" + preview(text) + "': expected UTF-8 text, found other bytes"; });
    const std::string key = name_now(text.substr(0, equals));
    const std::string value = text.substr(equals + 1);
    const Setting* setting = models::find_setting(schema.settings, key);
    const std::optional<Value> typed = setting ? parse_value(setting->rule, value) : std::nullopt;
    set(schema, key, typed.value_or(models::infer_value(value)), "the command line");
  }
}

std::string print_config(const Schema& schema) {
  struct Line {
    std::string text, comment;
  };
  std::vector<std::pair<std::string, std::vector<Line>>> sections;  // in order of first appearance
  const auto lines_of = [&](const std::string& section) -> std::vector<Line>& {
    for (auto& [name, lines] : sections)
      if (name == section) return lines;
    sections.push_back({section, {}});
    return sections.back().second;
  };
  const auto section_and_name = [](const std::string& key) {
    const size_t dot = key.rfind('.');
    return dot == std::string::npos ? std::pair{std::string(), key}
                                    : std::pair{key.substr(0, dot), key.substr(dot + 1)};
  };
  for (const Setting& setting : schema.settings) {
    const auto [section, name] = section_and_name(setting.name);
    const std::string expected = expectation(setting.rule);
    const bool says_nothing = expected == "a string" || expected == "true or false" || expected == "a list of strings";
    lines_of(section).push_back(
        {name + " = " + toml_text(setting.get()), setting.help + (says_nothing ? "" : "; " + expected)});
  }
  for (const OpenTable& table : schema.open) {
    for (const std::string& key : table.keys) {
      const auto [section, name] = section_and_name(table.prefix + "." + key);
      const auto given = table.values->find(key);
      if (given == table.values->end())
        lines_of(section).push_back({"# " + name + " =", "not set"});
      else
        lines_of(section).push_back({name + " = " + toml_text(given->second), ""});
    }
  }
  std::string text = "# " + schema.title + "\n";
  for (const auto& [section, lines] : sections) {
    text += section.empty() ? "\n" : "\n[" + section + "]\n";
    size_t column = 0;
    for (const Line& line : lines)
      if (line.text.size() < 40) column = std::max(column, line.text.size() + 2);
    for (const Line& line : lines) {
      text += line.text;
      if (!line.comment.empty())
        text += std::string(line.text.size() < column ? column - line.text.size() : 2, ' ') + "# " + line.comment;
      text += "\n";
    }
  }
  return text;
}

std::vector<std::string> differences(const Schema& before, const Schema& after) {
  std::vector<std::string> result;
  const auto compare = [&](const std::string& key, const std::string& old_text, const std::string& new_text) {
    if (old_text != new_text) result.push_back(key + ": " + preview(old_text) + " -> " + preview(new_text));
  };
  for (size_t i = 0; i < before.settings.size(); ++i)
    compare(before.settings[i].name, toml_text(before.settings[i].get()), toml_text(after.settings.at(i).get()));
  for (size_t i = 0; i < before.open.size(); ++i) {
    const auto text_of = [](const OpenTable& table, const std::string& key) {
      const auto found = table.values->find(key);
      return found == table.values->end() ? "not set" : toml_text(found->second);
    };
    for (const std::string& key : before.open[i].keys)
      compare(before.open[i].prefix + "." + key, text_of(before.open[i], key), text_of(after.open.at(i), key));
  }
  return result;
}

}  // namespace braid::apps
