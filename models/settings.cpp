#include "braid/models/settings.h"

#include <cmath>

#include "braid/tensor/base/strings.h"

namespace braid::models {

namespace {

using detail::decimal, detail::did_you_mean, detail::join, detail::parse_float, detail::parse_int, detail::shortest,
    detail::split, detail::trim;

std::string range_text(const ValueRule& rule) {
  const bool low = std::isfinite(rule.min), high = std::isfinite(rule.max);
  const std::string min = decimal(rule.min), max = decimal(rule.max);
  if (low && high && rule.min_open) return " above " + min + (rule.max_open ? " and below " : " and at most ") + max;
  if (low && high) return " from " + min + (rule.max_open ? " to below " : " to ") + max;
  if (low) return (rule.min_open ? " above " : " of at least ") + min;
  if (high) return (rule.max_open ? " below " : " of at most ") + max;
  return "";
}

std::string_view without_quotes(std::string_view text) {
  text = trim(text);
  const bool quoted = text.size() >= 2 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0];
  return quoted ? text.substr(1, text.size() - 2) : text;
}

bool in_brackets(std::string_view text) { return text.size() >= 2 && text.front() == '[' && text.back() == ']'; }

std::vector<std::string> list_items(std::string_view text) {
  if (in_brackets(text)) text = trim(text.substr(1, text.size() - 2));
  if (text.empty()) return {};
  std::vector<std::string> items = split(text, ',');
  for (std::string& item : items) item = without_quotes(item);
  return items;
}

constexpr int64_t kExact = int64_t{1} << 53;  // every integer up to it is a double

bool is_null(std::string_view text) { return text == "null" || text == "none"; }

}  // namespace

std::string expectation(const ValueRule& rule) {
  const auto plain = [&]() -> std::string {
    switch (rule.type) {
      case ValueType::boolean:
        return "true or false";
      case ValueType::integer:
        return "an integer" + range_text(rule);
      case ValueType::number:
        return "a number" + range_text(rule);
      case ValueType::string:
        if (!rule.choices.empty()) return "one of " + join(rule.choices, ", ");
        return rule.condition.empty() ? "a string" : rule.condition;
      case ValueType::integers:
        return rule.nullable ? "a list of items, each null or an integer" + range_text(rule)
                             : "a list of integers" + range_text(rule);
      case ValueType::strings:
        if (!rule.choices.empty()) return "a list of different names out of " + join(rule.choices, ", ");
        return "a list of strings";
    }
    return "";
  };
  return plain() + (rule.nullable && rule.type != ValueType::integers ? ", or null" : "");
}

bool allows(const ValueRule& rule, const Value& value) {
  const auto number = [&](double x) {
    return std::isfinite(x) && (rule.min_open ? x > rule.min : x >= rule.min) &&
           (rule.max_open ? x < rule.max : x <= rule.max);
  };
  const auto integer = [&](int64_t n) {
    return number(static_cast<double>(n)) &&
           (rule.max > static_cast<double>(kExact) || n <= static_cast<int64_t>(rule.max));
  };
  const auto text = [&](const std::string& t) {
    return (rule.choices.empty() || std::ranges::count(rule.choices, t) > 0) && (!rule.accepts || rule.accepts(t));
  };
  const auto check = [&](const auto& v) {
    using T = std::decay_t<decltype(v)>;
    if constexpr (std::is_same_v<T, std::monostate>)
      return rule.nullable && rule.type != ValueType::integers;
    else if (kTypeOf<T> != rule.type)
      return false;
    else if constexpr (std::is_same_v<T, bool>)
      return true;
    else if constexpr (std::is_same_v<T, int64_t>)
      return integer(v);
    else if constexpr (std::is_same_v<T, double>)
      return number(v);
    else if constexpr (std::is_same_v<T, std::string>)
      return text(v);
    else if constexpr (std::is_same_v<T, std::vector<int64_t>>)
      return std::ranges::all_of(v, [&](int64_t n) { return n == kNullItem ? rule.nullable : integer(n); });
    else {
      const bool twice = std::ranges::any_of(v, [&](const std::string& t) { return std::ranges::count(v, t) > 1; });
      return std::ranges::all_of(v, text) && (rule.choices.empty() || !twice);
    }
  };
  return std::visit(check, value);
}

std::optional<Value> parse_value(const ValueRule& rule, std::string_view text) {
  const std::string_view body = trim(text);
  if (rule.nullable && rule.type != ValueType::integers && is_null(body)) return Value();
  std::vector<int64_t> numbers;
  switch (rule.type) {
    case ValueType::boolean:
      if (body == "true" || body == "false") return body == "true";
      return {};
    case ValueType::integer:
      return parse_int(body);
    case ValueType::number:
      return parse_float(body);
    case ValueType::string:
      return std::string(text);
    case ValueType::integers:
      for (const std::string& item : list_items(body)) {
        const bool null = rule.nullable && is_null(item);
        const std::optional<int64_t> number = null ? kNullItem : parse_int(item);
        if (!number || (*number == kNullItem && !null)) return {};
        numbers.push_back(*number);
      }
      return numbers;
    case ValueType::strings:
      return list_items(body);
  }
  return {};
}

Value infer_value(std::string_view text) {
  std::vector<ValueType> types = {ValueType::boolean, ValueType::integer, ValueType::number};
  if (in_brackets(trim(text))) {
    const bool quotes = text.find_first_of("\"'") != std::string_view::npos;
    types = quotes ? std::vector{ValueType::strings} : std::vector{ValueType::integers, ValueType::strings};
  }
  for (const ValueType type : types)
    if (auto value = parse_value({.type = type}, text)) return *value;
  return std::string(without_quotes(text));
}

std::string value_text(const Value& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate>)
          return "null";
        else if constexpr (std::is_same_v<T, bool>)
          return v ? "true" : "false";
        else if constexpr (std::is_same_v<T, int64_t>)
          return v == kNullItem ? "null" : std::to_string(v);
        else if constexpr (std::is_same_v<T, double>)
          return shortest(v);
        else if constexpr (std::is_same_v<T, std::string>)
          return v;
        else {
          std::vector<std::string> items;
          for (const auto& item : v) items.push_back(value_text(item));
          return join(items, ",");
        }
      },
      value);
}

std::optional<Value> list_value(const std::vector<Value>& items) {
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
  for (const Value& item : items) {
    const auto* number = std::get_if<int64_t>(&item);
    if (number && *number != kNullItem) numbers.push_back(*number);
    if (const auto* text = std::get_if<std::string>(&item)) texts.push_back(*text);
    if (std::holds_alternative<std::monostate>(item)) numbers.push_back(kNullItem);
  }
  if (numbers.size() == items.size()) return numbers;
  if (texts.size() == items.size()) return texts;
  return {};
}

std::string bad_value(const std::string& name, const ValueRule& rule, const std::string& found,
                      const std::string& given) {
  const auto remark = std::ranges::find(rule.remarks, given, &std::pair<std::string, std::string>::first);
  return "bad value for " + name + ": expected " + expectation(rule) + ", found " + found +
         (remark != rule.remarks.end() ? "; " + remark->second : did_you_mean(given, rule.choices));
}

bool assign(const Setting& setting, Value value) {
  const auto* integer = std::get_if<int64_t>(&value);
  const auto* list = std::get_if<std::vector<int64_t>>(&value);
  if (integer && setting.rule.type == ValueType::number && *integer >= -kExact && *integer <= kExact)
    value = static_cast<double>(*integer);
  else if (list && list->empty() && setting.rule.type == ValueType::strings)
    value = std::vector<std::string>();  // [] has no type of its own
  if (!allows(setting.rule, value)) return false;
  setting.set(value);
  return true;
}

const Setting* find_setting(const std::vector<Setting>& settings, std::string_view name) {
  const auto found = std::ranges::find(settings, name, &Setting::name);
  return found == settings.end() ? nullptr : &*found;
}

}  // namespace braid::models
