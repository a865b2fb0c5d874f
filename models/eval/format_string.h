// Texts with fields of a JSON object in braces, for example "Question: {question}\nAnswer:".
//
//   {name}  {name.inner}  {name.0}  {name|filter|filter 'argument'}      {{ and }} are braces
//
// The filters are those of filters.h.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "braid/models/eval/filters.h"

namespace braid::models::eval {

// A string itself; a number as Python's str() writes it.
std::string text_of(const nlohmann::json& value);

class FormatString {
 public:
  FormatString() = default;
  // `name`: what the text is, for messages. Error(setting) names the part that is wrong.
  FormatString(const std::string& text, const std::string& name);

  // Error(input) as bad_line() where the object has no such field, or one that is not a text or a number.
  std::string text(const nlohmann::json& object, const Location& location) const;
  // The value itself, of whatever type, where the text is a field in braces and nothing else; else text().
  nlohmann::json value(const nlohmann::json& object, const Location& location) const;

 private:
  struct Part {  // `literal` and then the field, if any
    std::string literal;
    std::vector<std::string> path = {};
    Filters filters = {};
  };
  static Part parse_field(const std::string& field, const std::string& name);
  static const nlohmann::json& find(const Part& part, const nlohmann::json& object, const Location& location);
  static std::string expand(const Part& part, const nlohmann::json& object, const Location& location);

  std::vector<Part> parts_;
};

}  // namespace braid::models::eval
