#include "braid/models/eval/format_string.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::eval {
namespace {

using nlohmann::json;

const char* kind_of(const json& value) {
  return value.is_object()    ? "an object"
         : value.is_array()   ? "a list"
         : value.is_null()    ? "null"
         : value.is_boolean() ? "true or false"
         : value.is_number()  ? "a number"
                              : "a text";
}

// Where the } of a field stands, outside of single quotes, in text from `begin` on.
size_t end_of_field(const std::string& text, size_t begin) {
  const size_t length = split_unquoted(std::string_view(text).substr(begin), '}')[0].size();
  return begin + length < text.size() ? begin + length : std::string::npos;
}

}  // namespace

std::string text_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  const bool infinite = value.is_number_float() && !std::isfinite(value.get<double>());
  return infinite ? detail::shortest(value.get<double>()) : value.dump();
}

FormatString::FormatString(const std::string& text, const std::string& name) {
  std::string literal;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '{' || c == '}') && i + 1 < text.size() && text[i + 1] == c) {
      literal += c;
      ++i;
    } else if (c == '{') {
      const size_t end = end_of_field(text, i + 1);
      if (end == std::string::npos) bad_format(name, "a } behind every {", in_quotes(text.substr(i)));
      Part part = parse_field(text.substr(i + 1, end - i - 1), name);
      part.literal = std::move(literal);
      literal.clear();
      parts_.push_back(std::move(part));
      i = end;
    } else if (c == '}') {
      bad_format(name, "a { before every }, or }} for the character", in_quotes(text.substr(i)));
    } else {
      literal += c;
    }
  }
  if (!literal.empty()) parts_.push_back({.literal = std::move(literal)});
}

FormatString::Part FormatString::parse_field(const std::string& field, const std::string& name) {
  Part part;
  const size_t bar = field.find('|');
  part.path = detail::split(detail::trim(std::string_view(field).substr(0, bar)), '.');
  if (std::ranges::any_of(part.path, [](const std::string& key) { return key.empty(); }))
    bad_format(name, "the name of a field in {}", in_quotes("{" + field + "}"));
  if (bar != std::string::npos) part.filters = Filters(std::string_view(field).substr(bar + 1), name);
  return part;
}

const json& FormatString::find(const Part& part, const json& object, const Location& location) {
  const json* at = &object;
  std::string path;
  for (const std::string& key : part.path) {
    path += (path.empty() ? "" : ".") + key;
    const auto index = detail::parse_int(key);
    if (at->is_array() && index && *index >= 0 && *index < std::ssize(*at)) {
      at = &(*at)[static_cast<size_t>(*index)];
    } else if (at->is_object() && at->contains(key)) {
      at = &(*at)[key];
    } else {
      std::vector<std::string> names;
      if (at->is_object())
        for (const auto& [name, value] : at->items()) names.push_back(detail::preview(name));
      const std::string found = names.empty() ? kind_of(*at) : "the fields " + detail::join(names, ", ");
      bad_line(location, "the field '" + path + "'", found + detail::did_you_mean(key, names));
    }
  }
  return *at;
}

std::string FormatString::expand(const Part& part, const json& object, const Location& location) {
  if (part.path.empty()) return part.literal;
  const json& value = find(part, object, location);
  if (!value.is_string() && !value.is_number())
    bad_line(location, "a string or a number in the field '" + detail::join(part.path, ".") + "'", kind_of(value));
  return part.literal + part.filters(text_of(value), location);
}

std::string FormatString::text(const json& object, const Location& location) const {
  std::string result;
  for (const Part& part : parts_) result += expand(part, object, location);
  return result;
}

json FormatString::value(const json& object, const Location& location) const {
  const bool bare = parts_.size() == 1 && parts_[0].literal.empty() && !parts_[0].path.empty();
  if (bare && parts_[0].filters.empty()) return find(parts_[0], object, location);
  return text(object, location);
}

}  // namespace braid::models::eval
