// A setting described once, whether it is a flag of a command, a key of a TOML file or a key of config.json: the rule
// that its values obey, from which parsing, checks and messages are made, and the variable that holds the value.
//
//   int64_t steps = 1000;                                          // the initial value is the default
//   Setting setting{"train.steps", &steps, "optimizer steps", at_least(1)};
//   assign(setting, parse_value(setting.rule, "50").value());      // true; false and unchanged when it is not allowed
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace braid::models {

// A value of any setting; std::monostate is null.
using Value =
    std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<std::string>>;
inline constexpr int64_t kNullItem = INT64_MIN;  // an item of a list of integers that is null

enum class ValueType : uint8_t { boolean, integer, number, string, integers, strings };

// The values that a setting may have.
struct ValueRule {
  ValueType type = ValueType::string;
  // Range of a number, and of each number of a list. Bounds belong to it unless marked open; NaN and infinities never
  // do.
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_open = false;
  bool max_open = false;
  std::vector<std::string> choices = {};          // allowed strings, each at most once in a list; empty: any
  bool nullable = false;                          // null is allowed; in a list for each item
  bool (*accepts)(const std::string&) = nullptr;  // further condition on a string, which `condition` describes
  std::string condition = "";
  std::vector<std::pair<std::string, std::string>> remarks = {};  // strings that are not allowed, and what they are for
};

inline ValueRule at_least(double min) { return {.type = ValueType::number, .min = min}; }
inline ValueRule above(double min) { return {.type = ValueType::number, .min = min, .min_open = true}; }
inline ValueRule between(double min, double max) { return {.type = ValueType::number, .min = min, .max = max}; }
inline ValueRule from_below(double min, double max) {
  return {.type = ValueType::number, .min = min, .max = max, .max_open = true};
}
inline ValueRule one_of(std::vector<std::string> choices) { return {.choices = std::move(choices)}; }

// "an integer from 1 to 8", "one of step, tokens, time"
std::string expectation(const ValueRule& rule);
bool allows(const ValueRule& rule, const Value& value);
// The text as a value of the rule's type, allowed or not; nullopt if it is not one. Lists are written a,b or [a, "b"].
std::optional<Value> parse_value(const ValueRule& rule, std::string_view text);
// The text as a value of the type that it looks like: true, 12, 1e-3, [1, 2], "text" or text.
Value infer_value(std::string_view text);
// The text that parse_value() takes: lists as a,b.
std::string value_text(const Value& value);
// The items as one value; nullopt unless all are integers (or null) or all are strings.
std::optional<Value> list_value(const std::vector<Value>& items);
// "bad value for NAME: expected one of step, time, found FOUND; did you mean 'step'?", where `given` is the text for
// which the nearest choice is named.
std::string bad_value(const std::string& name, const ValueRule& rule, const std::string& found,
                      const std::string& given = "");

template <class T>
inline constexpr ValueType kTypeOf = std::is_same_v<T, bool>                       ? ValueType::boolean
                                     : std::is_same_v<T, int64_t>                  ? ValueType::integer
                                     : std::is_same_v<T, double>                   ? ValueType::number
                                     : std::is_same_v<T, std::vector<int64_t>>     ? ValueType::integers
                                     : std::is_same_v<T, std::vector<std::string>> ? ValueType::strings
                                                                                   : ValueType::string;

struct Setting {
  std::string name;  // "section.name"
  std::string help;  // one line
  ValueRule rule;
  std::function<Value()> get;
  std::function<void(const Value&)> set;  // only values that the rule allows: see assign()

  Setting(std::string name_, std::string help_, ValueRule rule_, std::function<Value()> get_,
          std::function<void(const Value&)> set_)
      : name(std::move(name_)),
        help(std::move(help_)),
        rule(std::move(rule_)),
        get(std::move(get_)),
        set(std::move(set_)) {}
  // Reads and writes *variable, whose type is the rule's. An enum, or a bool with choices, is the index of a string
  // among the choices. `null`: the value of the variable that represents null.
  template <class T>
  Setting(std::string name_, T* variable, std::string help_, ValueRule rule_ = {},
          std::type_identity_t<std::optional<T>> null = {})
      : name(std::move(name_)), help(std::move(help_)), rule(std::move(rule_)) {
    constexpr bool is_bool = std::is_same_v<T, bool>;
    rule.type = is_bool && !rule.choices.empty() ? ValueType::string : kTypeOf<T>;
    rule.nullable = null.has_value();
    get = [variable, null, choices = rule.choices]() -> Value {
      if (null && *variable == *null) return {};
      if constexpr (std::is_enum_v<T> || is_bool)
        if (!choices.empty()) return choices.at(static_cast<size_t>(*variable));
      if constexpr (std::is_enum_v<T>)
        return {};
      else
        return *variable;
    };
    set = [variable, null, choices = rule.choices](const Value& value) {
      if (std::holds_alternative<std::monostate>(value))
        *variable = *null;
      else if constexpr (std::is_enum_v<T> || is_bool) {
        const auto* text = std::get_if<std::string>(&value);
        *variable = text ? static_cast<T>(std::ranges::find(choices, *text) - choices.begin())
                         : static_cast<T>(std::get<bool>(value));
      } else
        *variable = std::get<T>(value);
    };
  }
};

// Sets the variable if the rule allows the value; a number also takes an integer that converts exactly.
bool assign(const Setting& setting, Value value);
// The setting of this name, or null.
const Setting* find_setting(const std::vector<Setting>& settings, std::string_view name);

}  // namespace braid::models
