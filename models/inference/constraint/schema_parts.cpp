#include "braid/models/inference/constraint/schema_parts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"

namespace braid::models::schema {
namespace {

using nlohmann::ordered_json;

// Names that say nothing about validity. $defs and definitions are read where a $ref leads.
constexpr const char* kAnnotations[] = {
    "title",      "description", "default",   "examples",      "example",          "format",
    "deprecated", "readOnly",    "writeOnly", "discriminator", "contentMediaType", "contentEncoding",
    "$schema",    "$id",         "$comment",  "$defs",         "definitions"};

constexpr int kMaxSteps = 32;  // references that lead to references

// ~ and / of a name in a path.
std::string escaped(const std::string& name) {
  std::string text;
  for (const char c : name) text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return text;
}

SchemaAt followed(const SchemaAt& at, const ordered_json& root, int steps = 0) {
  if (!at.schema.is_object() || !at.schema.contains("$ref")) return at;
  if (steps == kMaxSteps) at.fail(str("leads through more than ", kMaxSteps, " references"));
  return followed(resolve(at, root), root, steps + 1);
}

// The values that a schema lists, if it does.
std::optional<ordered_json> listed(const ordered_json& schema) {
  if (!schema.is_object()) return std::nullopt;
  if (schema.contains("const")) return ordered_json::array({schema.at("const")});
  if (schema.contains("enum") && schema.at("enum").is_array()) return schema.at("enum");
  return std::nullopt;
}

// Types that values of a schema may have, integers as numbers.
std::set<std::string> possible_types(const ordered_json& schema) {
  std::set<std::string> types;
  if (const auto values = listed(schema)) {
    for (const ordered_json& value : *values) types.insert(value.type_name());
    return types;
  }
  const ordered_json type = schema.is_object() ? schema.value("type", ordered_json()) : ordered_json();
  for (const ordered_json& one : type.is_array() ? type : ordered_json::array({type}))
    if (one.is_string()) types.insert(one == "integer" ? "number" : one.get<std::string>());
  if (types.empty()) types = {"object", "array", "string", "number", "boolean", "null"};
  return types;
}

// What tells the alternatives of a oneOf apart.
class Alternatives {
 public:
  Alternatives(const SchemaAt& at, const ordered_json& root) : root_(root) {
    for (size_t i = 0; i < at.schema.at("oneOf").size(); ++i) add(followed(at.below("oneOf", i), root));
  }
  bool exclude(size_t i, size_t j) const {
    const Alternative &a = all_[i], &b = all_[j];
    if (std::ranges::none_of(a.types, [&](const std::string& type) { return b.types.contains(type); })) return true;
    if (a.values && b.values && disjoint(*a.values, *b.values)) return true;
    return std::ranges::any_of(a.properties, [&](const auto& property) {
      const auto other = b.properties.find(property.first);
      return other != b.properties.end() && disjoint(*property.second, *other->second);
    });
  }

 private:
  using Values = std::vector<size_t>;  // numbers of listed values, sorted
  struct Alternative {
    std::set<std::string> types;
    const Values* values = nullptr;                   // none: it lists no values
    std::map<std::string, const Values*> properties;  // required ones that list values
  };

  static bool disjoint(const Values& a, const Values& b) {
    for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
      if (*x == *y) return false;
      *x < *y ? ++x : ++y;
    }
    return true;
  }

  void add(const SchemaAt& at) {
    all_.push_back({possible_types(at.schema), values_of(at.schema), {}});
    if (!at.schema.is_object() || at.schema.value("type", ordered_json()) != "object") return;
    const auto properties = at.schema.find("properties"), required = at.schema.find("required");
    if (properties == at.schema.end() || !properties->is_object() || required == at.schema.end()) return;
    std::set<std::string> names;
    for (const ordered_json& name : *required)
      if (name.is_string()) names.insert(name.get<std::string>());
    for (const auto& [name, property] : properties->items()) {
      if (!names.contains(name)) continue;
      const SchemaAt value = followed({property, at.path + "/properties/" + escaped(name)}, root_);
      if (const Values* values = values_of(value.schema)) all_.back().properties.emplace(name, values);
    }
  }

  // The same for the same schema, which references may lead to many times.
  const Values* values_of(const ordered_json& schema) {
    const auto [known, added] = lists_.try_emplace(&schema);
    std::optional<Values>& values = known->second;
    const auto list = added ? listed(schema) : std::nullopt;
    if (list) {
      values.emplace();
      for (const ordered_json& value : *list)
        values->push_back(numbers_.try_emplace(sorted(value), numbers_.size()).first->second);
      std::ranges::sort(*values);
    }
    return values ? &*values : nullptr;
  }

  // Equal values as equal JSON: properties in one order, 1 as 1.0.
  static nlohmann::json sorted(const ordered_json& value) {
    if (value.is_number()) return value.get<double>();
    if (!value.is_structured()) return value;
    nlohmann::json result = value.is_array() ? nlohmann::json::array() : nlohmann::json::object();
    for (const auto& [name, part] : value.items()) {
      if (value.is_array())
        result.push_back(sorted(part));
      else
        result[name] = sorted(part);
    }
    return result;
  }

  const ordered_json& root_;
  std::vector<Alternative> all_;
  std::map<const ordered_json*, std::optional<Values>> lists_;
  std::map<nlohmann::json, size_t> numbers_;
};

}  // namespace

bool is_annotation(const std::string& name) { return std::ranges::count(kAnnotations, name) > 0; }

void SchemaAt::fail(const std::string& what) const {
  braid::fail(ErrorKind::input, str("cannot use the schema: '", detail::preview(path, 200), "' ", what));
}

SchemaAt SchemaAt::below(const std::string& keyword, size_t i) const {
  return {schema.at(keyword).at(i), str(path, "/", keyword, "/", i)};
}

SchemaAt SchemaAt::below(const std::string& keyword, const std::string& name) const {
  return {schema.at(keyword).at(name), path + "/" + keyword + "/" + escaped(name)};
}

std::pair<uint32_t, uint32_t> SchemaAt::counts(const char* min, const char* max) const {
  const auto count = [&](const char* keyword, uint32_t missing) {
    const auto found = schema.find(keyword);
    if (found == schema.end()) return missing;
    constexpr double most = 1e9;
    const double n = found->is_number() ? found->get<double>() : -1;
    if (!(n >= 0 && n <= most && n == static_cast<uint32_t>(n)))
      fail(str("has a bad value of '", keyword, "': expected an integer from 0 to ", int64_t{1'000'000'000}));
    return static_cast<uint32_t>(n);
  };
  const std::pair<uint32_t, uint32_t> range{count(min, 0), count(max, Grammar::unlimited)};
  if (range.first > range.second) fail(str("permits no value: '", min, "' is above '", max, "'"));
  return range;
}

SchemaAt resolve(const SchemaAt& at, const ordered_json& root) {
  const ordered_json& reference = at.schema.at("$ref");
  const std::string text = reference.is_string() ? reference.get<std::string>() : "";
  if (text != "#" && !text.starts_with("#/"))
    at.fail("has a '$ref' that is not supported: expected a path in the same schema, such as #/$defs/name");
  try {
    return {root.at(ordered_json::json_pointer(text.substr(1))), text};
  } catch (const ordered_json::exception&) {
    at.fail("has a '$ref' that leads nowhere: expected the path of a schema in the same document");
  }
}

bool has_type(const ordered_json& value, const std::string& type) {
  if (type != "integer") return value.type_name() == type;
  if (value.is_number_float()) return value.get<double>() == std::floor(value.get<double>());
  return value.is_number();
}

void check_exclusive(const SchemaAt& at, const ordered_json& root) {
  const size_t n = at.schema.at("oneOf").size();
  if (n > 100) at.fail(str("has too many alternatives of 'oneOf': at most 100, found ", n));
  const Alternatives alternatives(at, root);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < i; ++j)
      if (!alternatives.exclude(i, j))
        at.fail(str("has alternatives ", j, " and ", i,
                    " of 'oneOf' that one value may fit both; use 'anyOf', or a required property with a 'const'"));
}

ordered_json merged_objects(const SchemaAt& at, const ordered_json& root) {
  ordered_json merged = {
      {"type", "object"}, {"properties", ordered_json::object()}, {"required", ordered_json::array()}};
  for (size_t i = 0; i < at.schema.at("allOf").size(); ++i) {
    const SchemaAt part = followed(at.below("allOf", i), root);
    if (!part.schema.is_object() || part.schema.value("type", ordered_json("object")) != "object")
      part.fail("is not supported in 'allOf': expected objects");
    for (const auto& [name, value] : part.schema.items()) {
      if (name == "properties" && value.is_object()) {
        check_properties(part, merged["properties"].size() + value.size());
        for (const auto& [property, schema] : value.items()) {
          if (merged["properties"].contains(property))
            part.fail("is not supported in 'allOf': it has a property that another part has too");
          merged["properties"][property] = schema;
        }
      } else if (name == "required" && value.is_array()) {
        for (const ordered_json& one : value) merged["required"].push_back(one);
      } else if (name == "additionalProperties" && value != true) {
        part.fail("is not supported in 'allOf': its 'additionalProperties' would exclude the other parts");
      } else if (name != "type" && name != "additionalProperties" && !is_annotation(name)) {
        part.fail(str("is not supported in 'allOf': it has '", detail::preview(name), "'"));
      }
    }
  }
  return merged;
}

}  // namespace braid::models::schema
