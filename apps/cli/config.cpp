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
    for (const models::ModelSetting& key : table.keys) keys.push_back(table.prefix + "." + key.name);
  return keys;
}

bool below(const OpenTable& table, const std::string& key) { return key.starts_with(table.prefix + "."); }

// Whether a value may be given for a key of an open table: one that the rule allows, and of its type. A text stands for
// a list, and for null, which TOML cannot write.
bool may_be(const ValueRule& rule, const Value& value) {
  using models::ValueType;
  if (rule.type == ValueType::string && rule.choices.empty() && !rule.accepts) return true;
  const std::optional<Value> parsed = parse_value(rule, plain_text(value));
  const bool scalar =
      rule.type == ValueType::boolean || rule.type == ValueType::integer || rule.type == ValueType::number;
  if (scalar && std::holds_alternative<std::string>(value) && parsed != Value()) return false;
  return parsed && allows(rule, *parsed);
}

[[noreturn]] void reject(const std::string& key, const std::string& where, const ValueRule& rule, const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  fail(ErrorKind::setting, models::bad_value(key + " in " + where, rule, preview(toml_text(value)), text ? *text : ""));
}

std::set<std::string> sections_of(const Schema& schema) {
  std::set<std::string> sections;
  for (const OpenTable& table : schema.open) sections.insert(table.prefix);
  for (const std::string& key : all_keys(schema))
    for (size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', dot + 1))
      sections.insert(key.substr(0, dot));
  return sections;
}

// `where` is "run.toml line 3" or "the command line".
void set(const Schema& schema, const std::string& key, const Value& value, const std::string& where) {
  if (const Setting* setting = models::find_setting(schema.settings, key)) {
    if (assign(*setting, value)) return;
    reject(key, where, setting->rule, value);
  }
  if (const Setting* setting = models::find_setting(schema.earlier, key)) {
    if (assign(*setting, value)) return;
    reject(key, where, setting->rule, value);
  }
  for (const OpenTable& table : schema.open) {
    if (!below(table, key)) continue;
    const std::string name = key.substr(table.prefix.size() + 1);
    const ValueRule* rule = nullptr;  // of the first family that has the key
    bool allowed = false;
    for (const models::ModelSetting& row : table.keys) {
      if (row.name != name) continue;
      if (!rule) rule = &row.rule;
      allowed = allowed || may_be(row.rule, value);
    }
    if (!rule) continue;
    if (!allowed) reject(key, where, *rule, value);
    (*table.values)[name] = value;
    return;
  }
  for (const std::string& name : {key, key.substr(key.rfind('.') + 1)})
    if (const auto here = schema.other_names.find(name); here != schema.other_names.end())
      fail(ErrorKind::setting, "unknown key '" + preview(key) + "' in " + where + "; here it is " + here->second);
  std::string advice = sections_of(schema).contains(key) ? "; it is a section: write '[" + key + "]' and its keys below"
                                                         : did_you_mean(key, all_keys(schema));
  if (advice.empty()) advice = "; " + schema.command + " --print-config lists all keys";
  fail(ErrorKind::setting, "unknown key '" + preview(key) + "' in " + where + advice);
}

// A section without keys says nothing, but its name may be misspelt.
void check_section(const Schema& schema, const std::string& name, const std::string& where) {
  const std::set<std::string> sections = sections_of(schema);
  check(sections.contains(name), ErrorKind::setting, [&] {
    return "unknown section '" + preview(name) + "' in " + where +
           did_you_mean(name, std::vector<std::string>(sections.begin(), sections.end()));
  });
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
      result += str("\\u00", hex[byte >> 4], hex[byte & 15]);
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

std::string plain_text(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? *text : toml_text(value);
}

std::vector<std::string> load_config(const Schema& schema, const std::filesystem::path& file,
                                     const std::vector<std::string>& overrides) {
  const auto name_now = [&](const std::string& key) {
    const auto at = schema.renamed.find(key);
    return at == schema.renamed.end() ? key : at->second;
  };
  std::set<std::string> names;
  if (!file.empty()) {
    constexpr int64_t limit = 1 << 20;  // a configuration of more than a megabyte is some other file
    for (const ConfigEntry& entry : parse_config(io::read_text_file(file.string(), limit), file.string())) {
      const std::string where = str(file.string(), " line ", entry.line);
      check(entry.problem.empty(), ErrorKind::setting,
            [&] { return "bad value for " + preview(entry.key) + " in " + where + ": " + entry.problem; });
      if (entry.empty_section)
        check_section(schema, name_now(entry.key), where);
      else
        set(schema, *names.insert(name_now(entry.key)).first, entry.value, where);
    }
  }
  std::vector<std::pair<std::string, std::string>> given;  // key, text
  for (const std::string& text : overrides) {
    const size_t equals = text.find('=');
    check(equals != std::string::npos && equals > 0, ErrorKind::setting,
          [&] { return "bad override '" + preview(text) + "': expected key=value"; });
    check(valid_utf8(text), ErrorKind::setting,
          [&] { return "bad override '" + preview(text) + "': expected UTF-8 text, found other bytes"; });
    given.emplace_back(name_now(text.substr(0, equals)), text.substr(equals + 1));
  }
  std::vector<std::string> notes;
  for (const OpenTable& table : schema.open)
    for (const auto& [key, value] : given) {
      if (key != table.base || value.empty() || table.values->empty()) continue;
      std::vector<std::string> replaced;
      for (const auto& [name, old] : *table.values)
        replaced.push_back(table.prefix + "." + name + "=" + plain_text(old));
      notes.push_back(key + "=" + value + " replaces " + join(replaced, ", ") + " of " + file.string() +
                      "; give one too to keep it");
      table.values->clear();
    }
  for (const auto& [key, value] : given) {
    const Setting* setting = models::find_setting(schema.settings, key);
    if (!setting) setting = models::find_setting(schema.earlier, key);
    const std::optional<Value> typed = setting ? parse_value(setting->rule, value) : std::nullopt;
    set(schema, *names.insert(key).first, typed.value_or(models::infer_value(value)), "the command line");
  }
  if (schema.after_loading)
    for (std::string& note : schema.after_loading(names)) notes.push_back(std::move(note));
  return notes;
}

namespace {

// The text of a setting as TOML.
std::string toml_of(const models::ModelSetting& setting) {
  const Value value = parse_value(setting.rule, setting.value).value_or(setting.value);
  const auto* items = std::get_if<std::vector<int64_t>>(&value);
  const bool null =
      std::holds_alternative<std::monostate>(value) || (items && std::ranges::count(*items, models::kNullItem) > 0);
  return toml_text(null ? Value(setting.value) : value);
}

std::string comment_of(const std::string& help, const ValueRule& rule) {
  const std::string expected = expectation(rule);
  const bool says_nothing = expected == "a string" || expected == "true or false" || expected == "a list of strings";
  return help + (says_nothing ? "" : "; " + expected);
}

}  // namespace

std::string print_config(const Schema& schema, const std::vector<models::ModelSetting>& in_effect) {
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
    lines_of(section).push_back({name + " = " + toml_text(setting.get()), comment_of(setting.help, setting.rule)});
  }
  for (const OpenTable& table : schema.open) {
    std::set<std::string> printed;
    for (const models::ModelSetting& key : in_effect.empty() ? table.keys : in_effect) {
      if (!printed.insert(key.name).second) continue;  // of another family
      const auto [section, name] = section_and_name(table.prefix + "." + key.name);
      const auto given = table.values->find(key.name);
      const bool set = given != table.values->end(), known = !in_effect.empty() && !key.value.empty();
      const std::string text = set     ? name + " = " + toml_text(given->second)
                               : known ? "# " + name + " = " + toml_of(key)
                                       : "# " + name + " =";
      const std::string comment = comment_of(key.help, key.rule) + (set ? "" : known ? "; not given" : "; not set");
      lines_of(section).push_back({text, comment + (key.in_use ? "" : "; without effect beside the other keys")});
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
    std::set<std::string> keys;
    for (const OpenTable* table : {&before.open[i], &after.open.at(i)})
      for (const auto& [key, value] : *table->values) keys.insert(key);
    for (const std::string& key : keys)
      compare(before.open[i].prefix + "." + key, text_of(before.open[i], key), text_of(after.open.at(i), key));
  }
  return result;
}

}  // namespace braid::apps
