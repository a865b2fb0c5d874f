#include "apps/cli/config.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "apps/cli/config_file.h"
#include "apps/cli/files.h"
#include "apps/cli/text.h"
#include "braid/tensor/error.h"

namespace braid::apps {
namespace {

std::string allowed_range(const Range& range) {
  const bool low = std::isfinite(range.min), high = std::isfinite(range.max);
  if (low && high) {
    const std::string from = range.min_open ? " above " : " from ";
    return from + decimal(range.min) + (range.max_open ? " to below " : " to ") + decimal(range.max);
  }
  if (low) return (range.min_open ? " above " : " of at least ") + decimal(range.min);
  if (high) return (range.max_open ? " below " : " of at most ") + decimal(range.max);
  return "";
}

// "a whole number of at least 1"
std::string expectation(const Setting& setting) {
  return std::visit(
      [&](auto* target) -> std::string {
        using T = std::remove_pointer_t<decltype(target)>;
        const std::string range = allowed_range(setting.range);
        if constexpr (std::is_same_v<T, bool>) return "true or false";
        if constexpr (std::is_same_v<T, int64_t>) return "a whole number" + range;
        if constexpr (std::is_same_v<T, double>) return "a number" + range;
        if constexpr (std::is_same_v<T, std::vector<int64_t>>) return "a list of whole numbers" + range;
        const bool list = std::is_same_v<T, std::vector<std::string>>;
        if (!setting.choices.empty())
          return std::string(list ? "a list with any of " : "one of ") + join(setting.choices, ", ");
        if (!setting.allowed.empty()) return setting.allowed;
        return list ? "a list of strings" : "a string";
      },
      setting.target);
}

bool inside(const Range& range, double value) {
  if (!std::isfinite(value)) return false;
  return (range.min_open ? value > range.min : value >= range.min) &&
         (range.max_open ? value < range.max : value <= range.max);
}

bool allowed_text(const Setting& setting, const std::string& text) {
  const auto& choices = setting.choices;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end()) return false;
  return valid_utf8(text) && (setting.accepts == nullptr || setting.accepts(text));
}

// Writes the value into the setting's target if type and range fit.
bool assign(const Setting& setting, const Value& value) {
  if (auto* const* target = std::get_if<double*>(&setting.target)) {
    // an integer is accepted for a float where the conversion is exact.
    const auto* whole = std::get_if<int64_t>(&value);
    const auto* number = std::get_if<double>(&value);
    if (!whole && !number) return false;
    const double given = whole ? static_cast<double>(*whole) : *number;
    if ((whole && std::fabs(given) > 0x1p53) || !inside(setting.range, given)) return false;
    **target = given;
    return true;
  }
  return std::visit(
      [&](auto* target) {
        using T = std::remove_pointer_t<decltype(target)>;
        const T* given = std::get_if<T>(&value);
        T empty{};
        if (const auto* list = std::get_if<std::vector<int64_t>>(&value);
            list && list->empty() && std::is_same_v<T, std::vector<std::string>>)
          given = &empty;  // [] has no type of its own
        if (!given) return false;
        const auto number_ok = [&](int64_t n) { return inside(setting.range, static_cast<double>(n)); };
        const auto text_ok = [&](const std::string& text) { return allowed_text(setting, text); };
        bool ok = true;
        if constexpr (std::is_same_v<T, int64_t>) ok = number_ok(*given);
        if constexpr (std::is_same_v<T, std::string>) ok = text_ok(*given);
        if constexpr (std::is_same_v<T, std::vector<int64_t>>)
          ok = std::all_of(given->begin(), given->end(), number_ok);
        if constexpr (std::is_same_v<T, std::vector<std::string>>)
          ok = std::all_of(given->begin(), given->end(), text_ok);
        if (ok) *target = *given;
        return ok;
      },
      setting.target);
}

std::vector<std::string> all_keys(const Schema& schema) {
  std::vector<std::string> keys;
  for (const Setting& setting : schema.settings) keys.push_back(setting.key);
  for (const OpenTable& table : schema.open)
    for (const std::string& key : table.keys) keys.push_back(table.prefix + "." + key);
  return keys;
}

// `where` is "run.toml line 3" or "the command line".
void set(const Schema& schema, const std::string& key, const Value& value, const std::string& where) {
  for (const Setting& setting : schema.settings) {
    if (setting.key != key) continue;
    if (assign(setting, value)) return;
    const auto* text = std::get_if<std::string>(&value);
    fail(ErrorKind::setting, "bad value for " + key + " in " + where + ": expected " + expectation(setting) +
                                 ", found " + preview(toml_text(value)) +
                                 (text ? did_you_mean(*text, setting.choices) : ""));
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

// The text of key=text as the type that the setting has; text that does not fit stays text, and set() complains.
Value override_value(const Schema& schema, const std::string& key, const std::string& text) {
  const Setting* setting = nullptr;
  for (const Setting& s : schema.settings)
    if (s.key == key) setting = &s;
  const auto unquoted = [](std::string_view t) {
    t = trim(t);
    const bool quoted = t.size() >= 2 && (t[0] == '"' || t[0] == '\'') && t.back() == t[0];
    return std::string(quoted ? t.substr(1, t.size() - 2) : t);
  };
  if (setting && std::holds_alternative<std::string*>(setting->target)) return text;
  const bool wants_list = setting && (std::holds_alternative<std::vector<int64_t>*>(setting->target) ||
                                      std::holds_alternative<std::vector<std::string>*>(setting->target));
  std::string_view body = trim(text);
  if (const bool brackets = body.size() >= 2 && body.front() == '[' && body.back() == ']'; brackets || wants_list) {
    if (brackets) body = trim(body.substr(1, body.size() - 2));
    std::vector<int64_t> numbers;
    std::vector<std::string> texts;
    if (body.empty()) return numbers;
    for (const std::string& part : split(body, ',')) {
      texts.push_back(unquoted(part));
      if (const auto number = parse_int(trim(part))) numbers.push_back(*number);
    }
    const bool as_text = setting && std::holds_alternative<std::vector<std::string>*>(setting->target);
    if (numbers.size() == texts.size() && !as_text) return numbers;
    return texts;
  }
  if (body == "true" || body == "false") return body == "true";
  if (const auto number = parse_int(body)) return *number;
  if (const auto number = parse_float(body)) return *number;
  return unquoted(text);
}

Value current(const Setting& setting) {
  return std::visit([](auto* target) -> Value { return *target; }, setting.target);
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
        if constexpr (std::is_same_v<T, bool>) return v ? "true" : "false";
        if constexpr (std::is_same_v<T, int64_t>) return std::to_string(v);
        if constexpr (std::is_same_v<T, std::string>) return quoted(v);
        if constexpr (std::is_same_v<T, double>) {
          const std::string text = shortest(v);
          return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
        }
        std::vector<std::string> parts;
        if constexpr (std::is_same_v<T, std::vector<int64_t>>)
          for (int64_t n : v) parts.push_back(std::to_string(n));
        if constexpr (std::is_same_v<T, std::vector<std::string>>)
          for (const std::string& t : v) parts.push_back(quoted(t));
        return "[" + join(parts, ", ") + "]";
      },
      value);
}

void load_config(const Schema& schema, const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  if (!file.empty()) {
    constexpr int64_t limit = 1 << 20;  // a configuration of more than a megabyte is some other file
    for (const ConfigEntry& entry : parse_config(read_text(file, limit), file.string())) {
      const std::string where = file.string() + " line " + std::to_string(entry.line);
      check(entry.problem.empty(), ErrorKind::setting,
            [&] { return "bad value for " + preview(entry.key) + " in " + where + ": " + entry.problem; });
      set(schema, entry.key, entry.value, where);
    }
  }
  for (const std::string& text : overrides) {
    const size_t equals = text.find('=');
    check(equals != std::string::npos && equals > 0, ErrorKind::setting,
          [&] { return "bad override '" + preview(text) + "': expected key=value"; });
    check(valid_utf8(text), ErrorKind::setting,
          [&] { return "bad override '" + preview(text) + "': expected UTF-8 text, found other bytes"; });
    const std::string key = text.substr(0, equals);
    set(schema, key, override_value(schema, key, text.substr(equals + 1)), "the command line");
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
    const auto [section, name] = section_and_name(setting.key);
    const std::string expected = expectation(setting);
    const bool says_nothing = expected == "a string" || expected == "true or false" || expected == "a list of strings";
    lines_of(section).push_back(
        {name + " = " + toml_text(current(setting)), setting.help + (says_nothing ? "" : "; " + expected)});
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
    compare(before.settings[i].key, toml_text(current(before.settings[i])), toml_text(current(after.settings.at(i))));
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
