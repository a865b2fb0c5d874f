// JSON schemas as grammars.
//
// Read: type (one or a list), properties, required, additionalProperties, items, prefixItems, minItems, maxItems, enum,
// const, anyOf, oneOf whose alternatives exclude one another, allOf of objects, $ref inside the document, minLength,
// maxLength, minimum, maximum and their exclusive forms. Ignored are the names that say nothing about validity: title,
// description, default, examples, format and the like. All others are errors.
//
// Every text of the grammar is valid. Not every valid one is a text: properties come in the order of the schema, and
// only those that it names unless it has additionalProperties; prefixItems likewise without items; names and constants
// have one spelling; integers have no fraction or exponent, and up to 18 digits where nothing bounds them.
#pragma once
#include <string>
#include <string_view>

#include "braid/models/inference/constraint/grammar.h"

namespace braid::models {

// The JSON values that are valid. Error(input), naming the keyword and its path, for what is not supported, is no
// schema, or permits no value.
Grammar json_schema_grammar(std::string_view schema);

// A function that a model may call.
struct CallableTool {
  std::string name;
  std::string parameters;  // the schema of its arguments; "": an object without properties
};
struct CallRules {
  std::string begin, end;  // the text around {"name", "arguments"}
  bool text_first = true;  // free text up to the first call, or without any; else calls alone
  bool several = true;     // calls
  std::string answer_end;  // what may also follow the last call
};
// Answers that call tools. Errors are those of json_schema_grammar(), with the tool's number.
Grammar tool_call_grammar(const std::vector<CallableTool>& tools, const CallRules& rules);

}  // namespace braid::models
