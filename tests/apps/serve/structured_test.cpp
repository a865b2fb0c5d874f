// Structured answers of a model with random weights, the hardest case: JSON, values of a schema, calls of tools.
#include <boost/test/unit_test.hpp>
#include <set>

#include "tests/apps/serve/test_server.h"
#include "tests/models/inference/constraint/valid_json.h"

using namespace braid;
using namespace braid::test;
using nlohmann::json;

BOOST_AUTO_TEST_SUITE(serve_structured)

namespace {

const json kSchema =
    json::parse(R"({"type": "object", "properties": {"kind": {"enum": ["a", "b"]}, "n": {"type": "integer",
  "minimum": 1, "maximum": 30}, "words": {"type": "array", "items": {"type": "string", "maxLength": 4}, "maxItems": 3}},
  "required": ["kind", "n", "words"], "additionalProperties": false})");

json tool_named(const std::string& name) {
  return {{"type", "function"}, {"function", {{"name", name}, {"description", "A tool."}, {"parameters", kSchema}}}};
}

json conversation(const json& fields) {
  json body = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
  body.update(fields);
  return body;
}

struct StructuredServer : TestServer {
  StructuredServer() : TestServer({}, {}, -1, "2048") {}
  json chat(const json& fields) {
    const Answer answer = post("/v1/chat/completions", conversation(fields).dump());
    BOOST_TEST_REQUIRE(answer.status == 200, answer.body);
    return answer.json();
  }
  std::vector<json> chat_events(json fields) {
    fields["stream"] = true;
    std::string body = post("/v1/chat/completions", conversation(fields).dump()).body;
    std::vector<json> events;
    for (size_t at = 0, end; (end = body.find("\n\n", at)) != std::string::npos; at = end + 2)
      if (const std::string data = body.substr(at + 6, end - at - 6); data != "[DONE]")
        events.push_back(json::parse(data));
    return events;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(every_answer_fits_its_schema) {
  StructuredServer server;
  const json format = {{"type", "json_schema"},
                       {"json_schema", {{"name", "n"}, {"strict", true}, {"schema", kSchema}}}};
  std::set<std::string> texts;
  for (int seed = 0; seed < 12; ++seed) {
    const json fields = {{"response_format", format},
                         {"seed", seed},
                         {"n", 3},
                         {"temperature", seed % 3},
                         {"logit_bias", {{"256", 100}, {"123", -100}}},
                         {"frequency_penalty", 1}};
    const json answer = server.chat(fields);
    for (const json& choice : answer["choices"]) {
      const auto text = choice["message"]["content"].get<std::string>();
      BOOST_TEST_REQUIRE(json::accept(text), text);
      BOOST_TEST(valid_json(json::parse(text), kSchema, kSchema), text);
      BOOST_TEST(choice["finish_reason"] == "stop");
      texts.insert(text);
    }
    std::vector<std::string> streamed(3);
    for (const json& event : server.chat_events(fields))
      streamed[event["choices"][0]["index"].get<size_t>()] += event["choices"][0]["delta"].value("content", "");
    for (size_t i = 0; i < 3; ++i) BOOST_TEST(answer["choices"][i]["message"]["content"] == streamed[i]);
    const json plain = {{"prompt", "Hi"}, {"max_tokens", 500}, {"seed", seed}, {"response_format", format}};
    const auto text = server.post("/v1/completions", plain.dump()).json()["choices"][0]["text"].get<std::string>();
    BOOST_TEST_REQUIRE(json::accept(text), text);
    BOOST_TEST(valid_json(json::parse(text), kSchema, kSchema), text);
  }
  BOOST_TEST(texts.size() > 12u);
}

BOOST_AUTO_TEST_CASE(any_object_or_the_beginning_of_one) {
  StructuredServer server;
  int whole = 0;
  for (int seed = 0; seed < 12; ++seed) {
    const json choice = server.chat(
        {{"response_format", {{"type", "json_object"}}}, {"seed", seed}, {"max_tokens", 1500}})["choices"][0];
    const auto text = choice["message"]["content"].get<std::string>();
    BOOST_TEST((choice["finish_reason"] == "stop") == json::accept(text), text);
    if (!json::accept(text)) continue;
    ++whole;
    BOOST_TEST(json::parse(text).is_object());
    // With fewer tokens it is cut, and says so.
    const json cut =
        server.chat({{"response_format", {{"type", "json_object"}}}, {"seed", seed}, {"max_tokens", 1}})["choices"][0];
    BOOST_TEST(cut["finish_reason"] == "length");
    BOOST_TEST(text.starts_with(cut["message"]["content"].get<std::string>()));
  }
  BOOST_TEST(whole > 6);
}

BOOST_AUTO_TEST_CASE(required_calls_of_tools) {
  StructuredServer server;
  std::set<std::string> ids, names;
  for (int seed = 0; seed < 8; ++seed) {
    json fields = {
        {"tools", {tool_named("first"), tool_named("second")}}, {"tool_choice", "required"}, {"seed", seed}, {"n", 2}};
    fields["logit_bias"] = {{"256", 3}, {"10", 3}};  // the ends of an answer
    const json answer = server.chat(fields);
    std::vector<json> streamed(2, json::array());
    std::vector<std::string> reasons(2);
    for (const json& event : server.chat_events(fields)) {
      const json& choice = event["choices"][0];
      const auto i = choice["index"].get<size_t>();
      if (choice["finish_reason"].is_string()) reasons[i] = choice["finish_reason"];
      BOOST_TEST(choice["delta"].value("content", "").empty());
      for (const json& part : choice["delta"].value("tool_calls", json::array())) {
        const auto index = part["index"].get<size_t>();
        if (index == streamed[i].size()) {
          BOOST_TEST(part["type"] == "function");
          streamed[i].push_back({part["function"]["name"], ""});
        }
        streamed[i][index][1] =
            streamed[i][index][1].get<std::string>() + part["function"]["arguments"].get<std::string>();
      }
    }
    for (size_t i = 0; i < 2; ++i) {
      const json& choice = answer["choices"][i];
      BOOST_TEST(choice["message"]["content"].is_null());
      BOOST_TEST(choice["finish_reason"] == "tool_calls");
      BOOST_TEST(reasons[i] == "tool_calls");
      BOOST_TEST_REQUIRE(choice["message"]["tool_calls"].size() > 0u);
      json same = json::array();
      for (const json& call : choice["message"]["tool_calls"]) {
        const auto arguments = call["function"]["arguments"].get<std::string>();
        BOOST_TEST(valid_json(json::parse(arguments), kSchema, kSchema), arguments);
        BOOST_TEST(call["type"] == "function");
        BOOST_TEST(call["id"].get<std::string>().starts_with("call_"));
        BOOST_TEST(ids.insert(call["id"]).second);
        names.insert(call["function"]["name"].get<std::string>());
        same.push_back({call["function"]["name"], arguments});
      }
      BOOST_TEST(same == streamed[i]);
    }
  }
  BOOST_TEST(names == (std::set<std::string>{"first", "second"}));
}

BOOST_AUTO_TEST_CASE(one_named_call_and_none) {
  StructuredServer server;
  const json tools = {tool_named("first"), tool_named("second")};
  for (int seed = 0; seed < 6; ++seed) {
    const json named = {{"type", "function"}, {"function", {{"name", "second"}}}};
    const json choice = server.chat({{"tools", tools}, {"tool_choice", named}, {"seed", seed}})["choices"][0];
    BOOST_TEST_REQUIRE(choice["message"]["tool_calls"].size() == 1u);
    BOOST_TEST(choice["message"]["tool_calls"][0]["function"]["name"] == "second");
    // Without tools, or with none to choose, the answer is the same plain text.
    const json none = server.chat(
                   {{"tools", tools}, {"tool_choice", "none"}, {"seed", seed}, {"max_tokens", 20}})["choices"][0],
               plain = server.chat({{"seed", seed}, {"max_tokens", 20}})["choices"][0];
    BOOST_TEST(none == plain);
    // A free choice: of an untrained model, text.
    const json free = server.chat({{"tools", tools}, {"seed", seed}, {"max_tokens", 20}})["choices"][0];
    BOOST_TEST(free["message"]["content"].is_string());
    BOOST_TEST(!free["message"].contains("tool_calls"));
  }
  // A call that is cut has the beginning of its arguments.
  const json cut =
      server.chat({{"tools", tools}, {"tool_choice", "required"}, {"seed", 1}, {"max_tokens", 50}})["choices"][0];
  BOOST_TEST(cut["finish_reason"] == "length");
}

// Calls and their results go back to the model.
BOOST_AUTO_TEST_CASE(results_of_tools_are_read) {
  StructuredServer server;
  const json answer = server.chat(
      {{"tools", {tool_named("first")}}, {"tool_choice", "required"}, {"seed", 2}, {"parallel_tool_calls", false}});
  const json message = answer["choices"][0]["message"];
  const json messages = {{{"role", "user"}, {"content", "Hi"}},
                         message,
                         {{"role", "tool"}, {"tool_call_id", message["tool_calls"][0]["id"]}, {"content", "42"}}};
  const json next = server.chat({{"messages", messages}, {"tools", {tool_named("first")}}, {"max_tokens", 5}});
  BOOST_TEST(next["usage"]["prompt_tokens"].get<int64_t>() > answer["usage"]["prompt_tokens"].get<int64_t>());
}

BOOST_AUTO_TEST_CASE(errors_come_before_any_work) {
  StructuredServer server;
  const auto error = [&](const json& fields) {
    const Answer answer = server.post("/v1/chat/completions", conversation(fields).dump());
    BOOST_TEST(answer.status == 400);
    return answer.json()["error"];
  };
  const json schema = {{"type", "object"}, {"properties", {{"a", {{"type", "string"}, {"pattern", "x"}}}}}};
  const json format =
      error({{"response_format", {{"type", "json_schema"}, {"json_schema", {{"name", "n"}, {"schema", schema}}}}}});
  BOOST_TEST(format["param"] == "response_format.json_schema.schema");
  BOOST_TEST(format["code"] == "invalid_schema");
  BOOST_TEST(
      format["message"] ==
      "bad value of 'response_format.json_schema.schema': cannot use the schema: '#/properties/a' has the keyword "
      "'pattern', which is not supported");
  const json tools =
      error({{"tools", {{{"type", "function"}, {"function", {{"name", "f"}, {"parameters", schema}}}}}}});
  BOOST_TEST(tools["param"] == "tools");
  BOOST_TEST(tools["message"].get<std::string>().find("'tools[0]/properties/a' has the keyword 'pattern'") !=
             std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
