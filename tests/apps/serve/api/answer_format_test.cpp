// The fields that say what an answer may be.
#include "apps/serve/api/answer_format.h"

#include <boost/test/unit_test.hpp>

#include "apps/serve/api/requests.h"
#include "tests/apps/serve/rejects.h"
#include "tests/models/inference/constraint/constrained_texts.h"

using namespace braid;
using namespace braid::apps::serve;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(serve_answer_format)

namespace {

ChatRequest chat_with(const std::string& fields) {
  return parse_chat_request(R"({"messages": [{"role": "user", "content": "x"}], )" + fields + "}",
                            {.ids = 258, .context = 64});
}

const std::string kTool = R"({"type": "function", "function": {"name": "f-1", "description": "d", "strict": true,
  "parameters": {"type": "object", "properties": {"z": {"type": "integer"}, "a": {"const": 1}}, "required": ["a", "z"],
  "additionalProperties": false}}})";
const std::string kOther = R"({"type": "function", "function": {"name": "g"}})";
const std::string kTools = "\"tools\": [" + kTool + ", " + kOther + "]";

bool answers(const ChatRequest& request, const std::string& text) {
  return reads(call_grammar(request.tools, {"<c>", "</c>"}, ""), text);
}

}  // namespace

BOOST_AUTO_TEST_CASE(formats_of_answers) {
  for (const char* none :
       {R"("response_format": null)", R"("response_format": {"type": "text"})", R"("response_format": {})"})
    BOOST_TEST(!chat_with(none).fields.format);
  const auto object = chat_with(R"("response_format": {"type": "json_object"})").fields.format;
  BOOST_TEST(reads(object, R"({"a": [1]})"));
  BOOST_TEST(!reads(object, "[1]"));
  const std::string schema = R"({"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema":
      {"type": "object", "properties": {"z": {"const": 1}, "a": {"const": 2}}, "required": ["a", "z"]}}})";
  for (const auto& format :
       {chat_with("\"response_format\": " + schema).fields.format,
        parse_completion_request(R"({"prompt": "x", "response_format": )" + schema + "}", {.ids = 258, .context = 64})
            .fields.format}) {
    BOOST_TEST(reads(format, R"({"z": 1, "a": 2})"));
    BOOST_TEST(!reads(format, R"({"a": 2, "z": 1})"));  // the order of the schema
  }
}

BOOST_AUTO_TEST_CASE(tools_of_answers) {
  BOOST_TEST(chat_with(R"("tools": [])").tools.callable.empty());
  BOOST_TEST(chat_with(kTools + R"(, "tool_choice": "none")").tools.callable.empty());
  BOOST_TEST(chat_with(kTools + R"(, "tool_choice": "none")").tools.described.is_null());
  const std::string call = R"(<c>{"name": "f-1", "arguments": {"z":3,"a":1}}</c>)",
                    other = R"(<c>{"name":"g","arguments":{}}</c>)";
  const ChatRequest free = chat_with(kTools);
  BOOST_TEST(free.tools.described.dump() == nlohmann::ordered_json::parse("[" + kTool + ", " + kOther + "]").dump());
  for (const std::string& text : {std::string(), std::string("Hello <c"), "Well. " + call, call + "\n" + other,
                                  call + other + call, other, "<<c" + call})
    BOOST_TEST(answers(free, text), text);
  for (const std::string& text : {call + " and", std::string("<c>"), std::string("a <c> b"),
                                  std::string(R"(<c>{"name": "h", "arguments": {}}</c>)"),
                                  std::string(R"(<c>{"name": "g", "arguments": {"x":1}}</c>)"),
                                  std::string(R"(<c>{"name": "f-1", "arguments": {}}</c>)"), other + "\n\n" + call})
    BOOST_TEST(!answers(free, text), text);
  const ChatRequest required = chat_with(kTools + R"(, "tool_choice": "required")");
  BOOST_TEST(answers(required, call + other));
  BOOST_TEST(!answers(required, "Well. " + call));
  BOOST_TEST(!answers(required, ""));
  const ChatRequest single = chat_with(kTools + R"(, "tool_choice": "required", "parallel_tool_calls": false)");
  BOOST_TEST(answers(single, call));
  BOOST_TEST(!answers(single, call + other));
  const ChatRequest named = chat_with(kTools + R"(, "tool_choice": {"type": "function", "function": {"name": "g"}})");
  BOOST_TEST(answers(named, other));
  BOOST_TEST(!answers(named, call));
  BOOST_TEST(!answers(named, other + other));
  BOOST_TEST(named.tools.described.size() == 2u);
  // Where a text ends an answer, it may follow the calls, and nothing else does.
  const auto ended = call_grammar(free.tools, {"<c>", "</c>"}, "\n");
  for (const std::string& text : {other + "\n", other, other + call + "\n", std::string("a\nb")})
    BOOST_TEST(reads(ended, text), text);
  BOOST_TEST(!reads(ended, other + "\n" + call));
}

BOOST_AUTO_TEST_CASE(errors_name_the_field) {
  const auto bad = [](const std::string& fields, const std::string& param, const std::string& words) {
    BOOST_CHECK_EXCEPTION(chat_with(fields), ApiError, rejects(400, param, words));
  };
  const auto format = [&](const std::string& value) { return "\"response_format\": " + value; };
  bad(format("\"json\""), "response_format", "an object with the type text, json_object or json_schema");
  bad(format(R"({"type": "MARKER"})"), "response_format.type", "text, json_object or json_schema, found a string");
  bad(format(R"({"type": "json_schema"})"), "response_format.json_schema", "an object, found null");
  bad(format(R"({"type": "json_schema", "json_schema": {}})"), "response_format.json_schema.schema", "an object");
  bad(format(R"({"type": "json_schema", "json_schema": {"name": "MARKER!", "schema": {}}})"),
      "response_format.json_schema.name", "1 to 64 letters");
  bad(format(R"({"type": "json_schema", "json_schema": {"strict": 1, "schema": {}}})"),
      "response_format.json_schema.strict", "true or false");
  bad(format(R"({"type": "json_schema", "json_schema": {"schema": {"properties": {"p": {"pattern": "MARKER"}}}}})"),
      "response_format.json_schema.schema", "'#/properties/p' has the keyword 'pattern', which is not supported");
  const auto tool = [](const std::string& function) {
    return R"("tools": [{"type": "function", "function": )" + function + "}]";
  };
  bad(R"("tools": {"MARKER": 1})", "tools", "a list of tools");
  bad(R"("tools": ["MARKER"])", "tools[0]", "an object");
  bad(R"("tools": [{"type": "MARKER"}])", "tools[0].type", "function");
  bad(R"("tools": [{"type": "function"}])", "tools[0].function", "an object");
  bad(tool("{}"), "tools[0].function.name", "1 to 64 letters, digits");
  bad(tool(R"({"name": "MARKER x"})"), "tools[0].function.name", "found a string");
  bad(tool(R"({"name": "f", "parameters": {"type": "string"}})"), "tools[0].function.parameters",
      "a schema of the type object");
  bad(R"("tools": [)" + kOther + "," + kOther + "]", "tools[1].function.name", "another tool has this name");
  std::string many = kOther;
  for (int i = 0; i < 128; ++i) many += R"(,{"type": "function", "function": {"name": "t)" + std::to_string(i) + "\"}}";
  bad("\"tools\": [" + many + "]", "tools", "at most 128, found 129");
  const ChatRequest unsupported =
      chat_with(tool(R"({"name": "f", "parameters": {"type": "object", "minProperties": 1}})"));
  BOOST_CHECK_EXCEPTION(call_grammar(unsupported.tools, {"<c>", "</c>"}, ""), ApiError,
                        rejects(400, "tools", "'tools[0]' has the keyword 'minProperties', which is not supported"));
  bad(R"("tool_choice": "required")", "tool_choice", "needs 'tools'");
  bad(kTools + R"(, "tool_choice": "MARKER")", "tool_choice", "found a string");
  bad(kTools + R"(, "tool_choice": {"type": "function", "function": {"name": "MARKER"}})", "tool_choice.function.name",
      "one of the 'tools'");
  bad(kTools + R"(, "parallel_tool_calls": "yes")", "parallel_tool_calls", "true or false");
  bad(kTools + ", " + format(R"({"type": "json_object"})"), "response_format", "beside 'tools'");
  bad(kTools + R"(, "answer_token_ids": [1])", "answer_token_ids", "not supported beside");
  bad(R"("functions": [{"name": "MARKER"}])", "functions", "use 'tools'");
  BOOST_CHECK_EXCEPTION(parse_completion_request(R"({"prompt": "x", )" + kTools + "}", {.ids = 258, .context = 64}),
                        ApiError, rejects(400, "tools", "a field of /v1/chat/completions"));
}

BOOST_AUTO_TEST_SUITE_END()
