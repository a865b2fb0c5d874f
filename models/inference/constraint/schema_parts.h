// Parts of a schema that schema.cpp composes: paths and references, objects, numbers.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "braid/models/inference/constraint/grammar.h"

namespace braid::models::schema {

// A schema inside a document.
struct SchemaAt {
  const nlohmann::ordered_json& schema;
  std::string path;  // of a JSON pointer: #/properties/name

  [[noreturn]] void fail(const std::string& what) const;
  SchemaAt below(const std::string& keyword) const { return {schema.at(keyword), path + "/" + keyword}; }
  SchemaAt below(const std::string& keyword, size_t i) const;
  SchemaAt below(const std::string& keyword, const std::string& name) const;
  // Two keywords that bound a number from below and above.
  std::pair<uint32_t, uint32_t> counts(const char* min, const char* max) const;
};

// Whether a keyword says nothing about validity.
bool is_annotation(const std::string& name);
// Where $ref leads, "#" or "#/...".
SchemaAt resolve(const SchemaAt& at, const nlohmann::ordered_json& root);
bool has_type(const nlohmann::ordered_json& value, const std::string& type);
// Error unless no value is valid under two alternatives of oneOf: they differ in their types, or in the values of an
// enum, a const or a property that both require.
void check_exclusive(const SchemaAt& at, const nlohmann::ordered_json& root);
// One schema for an allOf of objects that have no property in common.
nlohmann::ordered_json merged_objects(const SchemaAt& at, const nlohmann::ordered_json& root);

struct ObjectParts {
  struct Property {
    std::string name;
    SchemaAt schema;
    bool required;
  };
  std::vector<Property> properties;
  std::optional<SchemaAt> additional;  // of the properties behind them
  bool any = false;                    // any object
};
ObjectParts object_parts(const SchemaAt& at);
// Error where one object has too many properties.
void check_properties(const SchemaAt& at, size_t found);
void write_object(GrammarWriter& writer, const ObjectParts& parts, const std::function<void(const SchemaAt&)>& value);

// An integer, or a number, between the bounds of the schema.
void write_number(GrammarWriter& writer, const SchemaAt& at, bool integer);

}  // namespace braid::models::schema
