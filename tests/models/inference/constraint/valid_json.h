// Whether a value is valid under a schema: a second implementation, of the keywords that constraint/schema.h lists, by
// the rules of JSON Schema 2020-12.
#pragma once
#include <algorithm>
#include <nlohmann/json.hpp>

#include "braid/tensor/base/utf8.h"

namespace braid::test {

inline int64_t count_code_points(const std::string& text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

inline bool valid_json(const nlohmann::json& v, const nlohmann::json& s, const nlohmann::json& root) {
  using nlohmann::json;
  if (s.is_boolean()) return s.get<bool>();
  const auto each = [&](const char* keyword, auto&& count) {
    int64_t n = 0;
    for (const json& one : s.at(keyword)) n += valid_json(v, one, root);
    return count(n, std::ssize(s.at(keyword)));
  };
  const auto is = [&](const std::string& type) {
    if (type == "integer")
      return v.is_number_integer() || (v.is_number() && v.get<double>() == std::floor(v.get<double>()));
    return type == (v.is_number() ? "number" : v.type_name());
  };
  if (s.contains("$ref") &&
      !valid_json(v, root.at(json::json_pointer(s.at("$ref").get<std::string>().substr(1))), root))
    return false;
  if (s.contains("const") && v != s.at("const")) return false;
  if (s.contains("enum") && std::ranges::count(s.at("enum"), v) == 0) return false;
  if (s.contains("anyOf") && !each("anyOf", [](int64_t n, int64_t) { return n > 0; })) return false;
  if (s.contains("oneOf") && !each("oneOf", [](int64_t n, int64_t) { return n == 1; })) return false;
  if (s.contains("allOf") && !each("allOf", [](int64_t n, int64_t all) { return n == all; })) return false;
  if (s.contains("type")) {
    const json types = s.at("type").is_array() ? s.at("type") : json::array({s.at("type")});
    if (std::ranges::none_of(types, [&](const json& t) { return is(t.get<std::string>()); })) return false;
  }
  const auto bound = [&](const char* keyword, double missing) {
    return s.contains(keyword) ? s.at(keyword).get<double>() : missing;
  };
  if (v.is_number()) {
    const auto x = v.get<double>();
    if (x < bound("minimum", -INFINITY) || x > bound("maximum", INFINITY)) return false;
    if (x <= bound("exclusiveMinimum", -INFINITY) || x >= bound("exclusiveMaximum", INFINITY)) return false;
  }
  if (v.is_string()) {
    const auto n = static_cast<double>(count_code_points(v.get<std::string>()));
    if (n < bound("minLength", 0) || n > bound("maxLength", INFINITY)) return false;
  }
  if (v.is_array()) {
    const auto n = static_cast<double>(v.size());
    if (n < bound("minItems", 0) || n > bound("maxItems", INFINITY)) return false;
    const json prefix = s.value("prefixItems", json::array());
    for (size_t i = 0; i < v.size(); ++i)
      if (!valid_json(v[i], i < prefix.size() ? prefix[i] : s.value("items", json(true)), root)) return false;
  }
  if (v.is_object()) {
    for (const json& name : s.value("required", json::array()))
      if (!v.contains(name.get<std::string>())) return false;
    const json properties = s.value("properties", json::object());
    for (const auto& [name, value] : v.items())
      if (!valid_json(value,
                      properties.contains(name) ? properties.at(name) : s.value("additionalProperties", json(true)),
                      root))
        return false;
  }
  return true;
}

}  // namespace braid::test
