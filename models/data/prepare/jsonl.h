// One line of a .jsonl file: an object whose field (usually "text") holds a document.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace braid::models::text {

// The string in `field` of the object on this line. Error(input) naming file and line when the line is no JSON object,
// or the field is missing, given twice, or not a string. Other fields may hold anything, nested up to 64 levels.
std::string jsonl_text(std::string_view line, const std::string& field, const std::string& path, int64_t line_number);

// Is this an object with a string in that field, as far as can be seen?
bool has_text_field(std::string_view object, const std::string& field);

}  // namespace braid::models::text
