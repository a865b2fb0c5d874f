#include "apps/serve/api/answer_format.h"

#include <algorithm>

#include "apps/serve/api/api_error.h"
#include "braid/tensor/error.h"

namespace braid::apps::serve {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// The grammar that `make` makes; its errors are those of a field.
template <class Make>
GrammarPointer grammar_or_error(const std::string& field, Make&& make) {
  try {
    return std::make_shared<const models::Grammar>(make());
  } catch (const Error& error) {
    throw ApiError(400, str("bad value of '", field, "': ", error.what()), field, "invalid_schema");
  }
}

// A to z, digits, _ and -, as OpenAI has it.
std::string checked_name(const Fields& fields, const char* field) {
  const std::string name = fields.text(field).value_or("");
  const bool ok = !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  if (!ok) fields.bad(field, "1 to 64 letters, digits, '_' and '-'", name);
  return name;
}

const json& object_of(const Fields& fields, const char* field) {
  const json* value = fields.find(field);
  if (!value || !value->is_object()) fields.bad(field, "an object", value ? *value : json());
  return *value;
}

}  // namespace

GrammarPointer parse_response_format(const Fields& fields, const ordered_json& body) {
  const json* format = fields.find("response_format");
  if (!format) return nullptr;
  if (!format->is_object())
    fields.bad("response_format", "an object with the type text, json_object or json_schema", *format);
  const Fields inner(*format, "response_format.");
  const std::string type = inner.text("type").value_or("text");
  if (type == "text") return nullptr;
  if (type == "json_object") return std::make_shared<const models::Grammar>(models::json_object_grammar());
  if (type != "json_schema") inner.bad("type", "text, json_object or json_schema", type);
  const Fields schema(object_of(inner, "json_schema"), "response_format.json_schema.");
  if (schema.has("name")) checked_name(schema, "name");
  schema.boolean("strict");  // either way all of the answer fits the schema
  object_of(schema, "schema");
  return grammar_or_error("response_format.json_schema.schema", [&] {
    return models::json_schema_grammar(body.at("response_format").at("json_schema").at("schema").dump());
  });
}

ToolUse parse_tools(const Fields& fields, const ordered_json& body) {
  ToolUse use;
  const json* tools = fields.find("tools");
  if (tools && !tools->is_array()) fields.bad("tools", "a list of tools", *tools);
  if (tools && std::ssize(*tools) > max_tools)
    throw ApiError(400, str("bad value of 'tools': expected at most ", max_tools, ", found ", tools->size()), "tools",
                   "invalid_value");
  for (size_t i = 0; tools && i < tools->size(); ++i) {
    const std::string field = str("tools[", i, "]");
    if (!(*tools)[i].is_object()) fields.bad(field, "an object", (*tools)[i]);
    const Fields tool((*tools)[i], field + ".");
    if (tool.text("type").value_or("") != "function")
      tool.bad("type", "\"function\"", (*tools)[i].value("type", json()));
    const Fields function(object_of(tool, "function"), field + ".function.");
    const std::string name = checked_name(function, "name");
    function.text("description");
    function.boolean("strict");
    if (std::ranges::count(use.callable, name, &models::CallableTool::name) > 0)
      throw ApiError(400, str("bad value of '", field, ".function.name': another tool has this name"),
                     field + ".function.name", "invalid_value");
    std::string parameters;
    if (const json* schema = function.find("parameters"); schema && *schema != json::object()) {
      if (!schema->is_object() || schema->value("type", json()) != "object")
        function.bad("parameters", "a schema of the type object", *schema);
      parameters = body.at("tools").at(i).at("function").at("parameters").dump();
    }
    use.callable.push_back({name, parameters});
  }
  const bool several = fields.boolean("parallel_tool_calls").value_or(true);
  const bool any = !use.callable.empty();
  if (any) use.described = body.at("tools");
  use.several = several;
  const json* choice = fields.find("tool_choice");
  if (!choice || *choice == "auto") return use;
  if (*choice == "none") return {};
  if (!any) throw ApiError(400, "'tool_choice' needs 'tools' beside it", "tool_choice", "invalid_value");
  use.text_first = false;
  if (*choice == "required") return use;
  if (!choice->is_object() || choice->value("type", json()) != "function")
    fields.bad("tool_choice", R"("none", "auto", "required" or {"type": "function", "function": {"name": ...}})",
               *choice);
  const Fields named(object_of(Fields(*choice, "tool_choice."), "function"), "tool_choice.function.");
  const std::string name = checked_name(named, "name");
  std::erase_if(use.callable, [&](const models::CallableTool& tool) { return tool.name != name; });
  if (use.callable.empty())
    throw ApiError(400, "bad value of 'tool_choice.function.name': expected the name of one of the 'tools'",
                   "tool_choice.function.name", "invalid_value");
  use.several = false;
  return use;
}

GrammarPointer call_grammar(const ToolUse& use, const models::text::CallMarks& marks, const std::string& answer_end) {
  return grammar_or_error("tools", [&] {
    return models::tool_call_grammar(use.callable, {.begin = marks.begin,
                                                    .end = marks.end,
                                                    .text_first = use.text_first,
                                                    .several = use.several,
                                                    .answer_end = answer_end});
  });
}

}  // namespace braid::apps::serve
