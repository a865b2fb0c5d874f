#include "apps/serve/api/requests.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <set>

#include "apps/serve/api/api_error.h"
#include "tests/apps/serve/rejects.h"

using namespace braid::apps::serve;

BOOST_AUTO_TEST_SUITE(serve_requests)

using braid::str;
using braid::test::rejects;

namespace {

const RequestLimits kLimits{.ids = 258, .context = 64, .sequences = 8};

CompletionRequest completion(const std::string& body) { return parse_completion_request(body, kLimits); }
ChatRequest chat(const std::string& body) { return parse_chat_request(body, kLimits); }

const std::vector<std::string> kValues = {
    R"("MARKER")",          R"("")",      "true",  "false",       "[]",     "{}",   R"([["MARKER"]])",
    R"({"MARKER": 1})",     "-1",         "-1e18", "1e18",        "0",      "-0.0", "0.5",
    "99999999999999999999", "2147483648", "1e-30", R"("\u0000")", "[null]", "[1e5]"};

// Every field and those of the values that it may have; all others are rejected with its name.
const std::map<std::string, std::set<std::string>> kFields = {
    {"n", {}},
    {"best_of", {"0"}},
    {"max_tokens", {"0", "-1", "2147483648"}},
    {"logprobs", {"0"}},
    {"temperature", {"0", "-0.0", "0.5", "1e-30"}},
    {"top_p", {"0", "-0.0", "0.5", "1e-30"}},
    {"min_p", {"0", "-0.0", "0.5", "1e-30"}},
    {"top_k", {"0", "-1", "2147483648"}},
    {"repetition_penalty", {"0.5", "1e-30"}},
    {"seed", {"0", "-1", "2147483648"}},
    {"stop", {R"("MARKER")", R"("\u0000")", "[]"}},
    {"stream", {"true", "false"}},
    {"stream_options", {"{}", R"({"MARKER": 1})"}},
    {"echo", {"true", "false"}},
    {"ignore_eos", {"true", "false"}},
    {"return_token_ids", {"true", "false"}},
    {"add_special_tokens", {"true", "false"}},
    {"parse_special", {"true", "false"}},
    {"logit_bias", {"{}", "[]"}},
    {"tools", {"{}", "[]"}},
    {"presence_penalty", {"0", "-0.0", "-1", "0.5", "1e-30"}},
    {"frequency_penalty", {"0", "-0.0", "-1", "0.5", "1e-30"}},
    {"suffix", {R"("")"}},
    {"model", {R"("MARKER")", R"("")", R"("\u0000")"}},
    {"user", {R"("MARKER")", R"("")", R"("\u0000")"}},
    {"response_format", {"{}", R"({"MARKER": 1})"}},
    {"prompt", {R"("MARKER")", R"("\u0000")", R"("")", "[]"}},
};

}  // namespace

BOOST_AUTO_TEST_CASE(every_field_with_every_bad_value_is_an_error_that_names_it) {
  int64_t requests = 0;
  for (const auto& [field, allowed] : kFields) {
    for (const std::string& value : kValues) {
      ++requests;
      const std::string prompt = field == "prompt" ? "" : R"("prompt": "x", )";
      const std::string body = "{" + prompt + "\"" + field + "\": " + value + "}";
      BOOST_TEST_CONTEXT(body) {
        if (allowed.count(value) > 0)
          BOOST_CHECK_NO_THROW(completion(body));
        else
          BOOST_CHECK_EXCEPTION(completion(body), ApiError, rejects(400, field, field));
      }
    }
  }
  BOOST_TEST(requests == 540);
}

BOOST_AUTO_TEST_CASE(missing_fields_and_null_have_defaults) {
  for (const std::string body :
       {R"({"prompt": "x"})",
        R"({"prompt": "x", "n": null, "temperature": null, "stop": null, "max_tokens": null, "logprobs": null,
            "echo": null, "seed": null, "stream": null, "stream_options": null, "top_k": null, "unknown": {"a": []},
            "best_of": null, "frequency_penalty": null, "logit_bias": null, "model": null, "presence_penalty": null,
            "suffix": null, "top_p": null, "user": null, "response_format": null, "tools": null})"}) {
    const CompletionRequest request = completion(body);
    BOOST_TEST(request.fields.n == 1);
    BOOST_TEST(!request.fields.max_tokens.has_value());
    BOOST_TEST(request.fields.sampling.temperature == 1);
    BOOST_TEST(request.fields.sampling.top_p == 1);
    BOOST_TEST(request.fields.sampling.top_k == 0);
    BOOST_TEST(request.fields.sampling.min_p == 0);
    BOOST_TEST(request.fields.sampling.repetition_penalty == 1);
    BOOST_TEST(request.fields.sampling.vocabulary == 258);
    BOOST_TEST(!request.fields.seeded);
    BOOST_TEST(request.fields.stops.empty());
    BOOST_TEST(!request.fields.top.has_value());
    BOOST_TEST(!request.fields.stream);
    BOOST_TEST(!request.echo);
    BOOST_TEST(request.add_special_tokens);
    BOOST_TEST(request.parse_special);
  }
}

BOOST_AUTO_TEST_CASE(fields_arrive_where_they_belong) {
  const CompletionRequest request = completion(
      R"({"prompt": "x", "n": 2, "max_tokens": 7, "temperature": 0.5, "top_p": 0.25, "min_p": 0.125, "top_k": 9,
          "repetition_penalty": 1.5, "seed": -3, "stop": ["a", "bc"], "stream": true, "logprobs": 4, "echo": true,
          "stream_options": {"include_usage": true}, "ignore_eos": true, "add_special_tokens": false,
          "parse_special": false})");
  BOOST_TEST(request.fields.n == 2);
  BOOST_TEST(request.fields.max_tokens.value() == 7);
  BOOST_TEST(request.fields.sampling.temperature == 0.5);
  BOOST_TEST(request.fields.sampling.top_p == 0.25);
  BOOST_TEST(request.fields.sampling.min_p == 0.125);
  BOOST_TEST(request.fields.sampling.top_k == 9);
  BOOST_TEST(request.fields.sampling.repetition_penalty == 1.5);
  BOOST_TEST(request.fields.sampling.seed == static_cast<uint64_t>(-3));
  BOOST_TEST(request.fields.seeded);
  BOOST_TEST((request.fields.stops == std::vector<std::string>{"a", "bc"}));
  BOOST_TEST(request.fields.top.value() == 4);
  BOOST_TEST((request.fields.stream && request.fields.include_usage && request.fields.ignore_eos && request.echo));
  BOOST_TEST((!request.add_special_tokens && !request.parse_special));
  BOOST_TEST(completion(R"({"prompt": "x", "stop": "end"})").fields.stops.at(0) == "end");
}

BOOST_AUTO_TEST_CASE(prompts_are_texts_or_ids_or_lists_of_them) {
  using Ids = std::vector<int32_t>;
  const auto prompts = [](const std::string& prompt) { return completion("{\"prompt\": " + prompt + "}").prompts; };
  BOOST_TEST(std::get<std::string>(prompts(R"("a\u00e9")").at(0)) == "a\xc3\xa9");
  BOOST_TEST((std::get<Ids>(prompts("[72, 257]").at(0)) == Ids{72, 257}));
  BOOST_TEST(prompts("[[1], [2, 3]]").size() == 2U);
  BOOST_TEST((std::get<Ids>(prompts("[[1], [2, 3]]").at(1)) == Ids{2, 3}));
  BOOST_TEST(std::get<std::string>(prompts(R"(["a", "b"])").at(1)) == "b");
  BOOST_TEST(prompts(R"(["a", [7]])").size() == 2U);
  const auto bad = [&](const std::string& prompt, const std::string& param, const std::string& words) {
    BOOST_CHECK_EXCEPTION(prompts(prompt), ApiError, rejects(400, param, words));
  };
  bad("[258]", "prompt[0]", "a token id from 0 to 257, found the number 258");
  bad("[1, -1]", "prompt[1]", "found the number -1");
  bad("[[1], [2, 4294967296]]", "prompt[1][1]", "found the number 4294967296");
  bad("[1, \"MARKER\"]", "prompt[1]", "found a string");
  for (const char* prompt : {"\"\"", "[\"\"]", "null"}) BOOST_TEST(std::get<std::string>(prompts(prompt).at(0)) == "");
  for (const char* prompt : {"[]", "[[]]"}) BOOST_TEST(std::get<Ids>(prompts(prompt).at(0)).empty());
  BOOST_TEST(std::get<std::string>(completion("{}").prompts.at(0)) == "");
  bad("[\"a\", {}]", "prompt[1]", "found an object");
  bad("[1.5]", "prompt[0]", "found the number 1.5");
  bad("[[1],[1],[1],[1],[1],[1],[1],[1],[1]]", "prompt", "at most 8, found 9 prompts");
  BOOST_CHECK_EXCEPTION(completion(R"({"prompt": [[1],[1],[1]], "n": 3})"), ApiError,
                        rejects(400, "n", "at most 8, found 3 prompts with 3 texts of each"));
}

// OpenAI's limits themselves, and what clients send for "no limit".
BOOST_AUTO_TEST_CASE(the_ends_of_the_ranges_are_taken) {
  const auto with = [](const std::string& field) { return completion("{\"prompt\": \"x\", " + field + "}").fields; };
  BOOST_TEST(with("\"temperature\": 2").sampling.temperature == 2);
  BOOST_TEST(with("\"top_p\": 0").sampling.top_p == 0);
  BOOST_TEST(with("\"top_p\": 1").sampling.top_p == 1);
  BOOST_TEST(with("\"max_tokens\": 4096").max_tokens.value() == 4096);
  BOOST_TEST(with("\"max_tokens\": -1").max_tokens.value() == 64);
  BOOST_TEST(with("\"n\": 8").n == 8);
  BOOST_TEST(with("\"n\": 2, \"best_of\": 5").best_of == 5);
  BOOST_TEST(with("\"n\": 3").best_of == 3);
  BOOST_TEST(with("\"logprobs\": 5").top.value() == 5);
  BOOST_TEST(with("\"seed\": -9223372036854775808").seeded);
  for (const double x : {-2.0, 2.0}) {
    BOOST_TEST(with(str("\"frequency_penalty\": ", static_cast<int>(x))).sampling.frequency_penalty == x);
    BOOST_TEST(with(str("\"presence_penalty\": ", static_cast<int>(x))).sampling.presence_penalty == x);
  }
  const auto bias = with(R"("logit_bias": {"0": -100, "257": 0.5})").sampling.logit_bias;
  BOOST_TEST((bias == std::vector<std::pair<int32_t, float>>{{0, -100}, {257, 0.5}}));
  const auto bad = [&](const std::string& field, const std::string& param, const std::string& words) {
    BOOST_CHECK_EXCEPTION(with(field), ApiError, rejects(400, param, words));
  };
  for (const char* value : {R"({"258": 1})", R"({"-1": 1})", R"({"MARKER": 1})", R"({"1": 101})", R"({"1": "MARKER"})"})
    bad("\"logit_bias\": " + std::string(value), "logit_bias", "token ids from 0 to 257 as names");
  bad("\"n\": 3, \"best_of\": 2", "best_of", "at least the value of 'n', 3, found 2");
  bad("\"best_of\": 2, \"stream\": true", "best_of", "cannot stream");
  bad("\"frequency_penalty\": 2.5", "frequency_penalty", "from -2 to 2");
  BOOST_TEST(chat(R"({"messages": [{"role": "user", "content": "x"}], "max_completion_tokens": 4096, "top_logprobs": 0,
                      "n": 8})")
                 .fields.max_tokens.value() == 4096);
  BOOST_TEST(chat(R"({"messages": [{"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}],
                                    "refusal": null, "tool_calls": null, "function_call": null, "audio": null}]})")
                 .messages.at(0)
                 .content == "No.");
}

BOOST_AUTO_TEST_CASE(stops_are_bounded) {
  std::string many = "\"a\"", long_one(1025, 'a');
  for (int i = 0; i < 64; ++i) many += ",\"a\"";
  BOOST_CHECK_EXCEPTION(completion(R"({"prompt": "x", "stop": [)" + many + "]}"), ApiError,
                        rejects(400, "stop", "at most 64 strings, found 65"));
  BOOST_CHECK_EXCEPTION(completion(R"({"prompt": "x", "stop": ")" + long_one + "\"}"), ApiError,
                        rejects(400, "stop", "1 to 1024 bytes"));
}

BOOST_AUTO_TEST_CASE(conversations) {
  const ChatRequest request = chat(
      R"({"messages": [{"role": "system", "content": "Be kind."},
          {"role": "user", "content": [{"type": "text", "text": "H"}, {"type": "text", "text": "i"}], "name": "x"},
          {"role": "assistant", "content": null, "tool_calls": [], "function_call": null}], "max_completion_tokens": 5, "logprobs": true, "top_logprobs": 2})");
  BOOST_TEST(request.messages.size() == 3U);
  BOOST_TEST(request.messages[1].role == "user");
  BOOST_TEST(request.messages[1].content == "Hi");
  BOOST_TEST(request.messages[2].content == "");
  BOOST_TEST(request.fields.max_tokens.value() == 5);
  BOOST_TEST(request.fields.top.value() == 2);
  BOOST_TEST(!chat(R"({"messages": [{"role": "user", "content": ""}]})").fields.top.has_value());
  const auto bad = [](const std::string& rest, const std::string& param, const std::string& words) {
    BOOST_CHECK_EXCEPTION(chat("{" + rest + "}"), ApiError, rejects(400, param, words));
  };
  const std::string fine = R"("messages": [{"role": "user", "content": "x"}], )";
  bad("", "messages", "'messages' is missing");
  BOOST_TEST(chat("{" + fine + R"("answer_token_ids": [0, 257]})").answer == std::vector<int32_t>({0, 257}),
             boost::test_tools::per_element());
  BOOST_TEST(chat("{" + fine + R"("answer_token_ids": []})").answer.empty());
  bad(fine + R"("answer_token_ids": "MARKER")", "answer_token_ids", "a list of token ids, found a string");
  bad(fine + R"("answer_token_ids": [258])", "answer_token_ids", "258");
  bad(R"("messages": [])", "messages", "a list, not empty");
  bad(R"("messages": {"MARKER": 1})", "messages", "found an object");
  bad(R"("messages": ["MARKER"])", "messages[0]", "an object with role and content");
  bad(R"("messages": [{"content": "MARKER"}])", "messages[0].role", "letters a to z");
  bad(R"("messages": [{"role": "MARKER", "content": ""}])", "messages[0].role", "letters a to z");
  bad(R"("messages": [{"role": 3, "content": ""}])", "messages[0].role", "a string");
  bad(R"("messages": [{"role": "user", "content": 3}])", "messages[0].content", "found the number 3");
  bad(R"("messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "MARKER"}]}])",
      "messages[0].content", "found an object");
  bad(R"("messages": [{"role": "assistant", "tool_calls": [{"MARKER": 1}]}])", "messages[0].tool_calls", "expected");
  bad(R"("messages": [{"role": "assistant", "function_call": {"name": "MARKER"}}])", "messages[0].function_call",
      "is not supported");
  bad(fine + R"("max_tokens": 0)", "max_tokens", "an integer of at least 1, or -1: as many as fit, found the number 0");
  bad(fine + R"("max_tokens": 1.0)", "max_tokens", "found the number 1.0");
  bad(fine + R"("seed": 9223372036854775808)", "seed", "to 9223372036854775807, found the number 9223372036854775808");
  bad(fine + R"("max_completion_tokens": 0)", "max_completion_tokens", "at least 1");
  bad(fine + R"("logprobs": 1)", "logprobs", "true or false");
  bad(fine + R"("top_logprobs": 1)", "top_logprobs", "needs 'logprobs'");
  bad(fine + R"("logprobs": true, "top_logprobs": 21)", "top_logprobs", "from 0 to 20");
  bad(fine + R"("logit_bias": {"50256": -100})", "logit_bias", "ids from 0 to 257");
}

BOOST_AUTO_TEST_CASE(texts_and_tokens) {
  BOOST_TEST(parse_tokenize_request(R"({"prompt": "x", "add_special_tokens": false})").text == "x");
  BOOST_TEST(parse_tokenize_request(R"({"content": ""})").text == "");
  BOOST_TEST(!parse_tokenize_request(R"({"content": "x"})").add_special_tokens);
  BOOST_TEST(parse_tokenize_request(R"({"content": "x", "add_special": true})").add_special_tokens);
  BOOST_CHECK_EXCEPTION(parse_tokenize_request("{}"), ApiError, rejects(400, "prompt", "expected one of"));
  BOOST_CHECK_EXCEPTION(parse_tokenize_request(R"({"prompt": "MARKER", "content": "x"})"), ApiError,
                        rejects(400, "prompt", "expected one of"));
  BOOST_CHECK_EXCEPTION(parse_tokenize_request(R"({"prompt": 3})"), ApiError, rejects(400, "prompt", "a string"));
  BOOST_TEST(parse_detokenize_request(R"({"tokens": []})", kLimits).empty());
  BOOST_CHECK_EXCEPTION(parse_detokenize_request("{}", kLimits), ApiError, rejects(400, "tokens", "missing"));
  BOOST_CHECK_EXCEPTION(parse_detokenize_request(R"({"tokens": "MARKER"})", kLimits), ApiError,
                        rejects(400, "tokens", "found a string"));
  BOOST_CHECK_EXCEPTION(parse_detokenize_request(R"({"tokens": [1, 258]})", kLimits), ApiError,
                        rejects(400, "tokens[1]", "found the number 258"));
}

BOOST_AUTO_TEST_CASE(bodies_that_are_no_object_of_json) {
  const auto bad = [](const std::string& body, const std::string& words) {
    BOOST_TEST_CONTEXT(body.substr(0, 60))
    BOOST_CHECK_EXCEPTION(completion(body), ApiError, rejects(400, "", words));
  };
  bad("", "not JSON");
  bad("MARKER", "not JSON");
  bad("{", "not JSON");
  bad(R"({"prompt": "MARKER)", "not JSON");
  bad(R"({"prompt": "x"} MARKER)", "not JSON");
  bad(R"({"prompt": "x", "temperature": NaN})", "not JSON");
  bad(R"({"prompt": "x", "temperature": 1e999})", "a number out of range");
  bad("{\"prompt\": \"\xff\"}", "not JSON in UTF-8");
  bad(R"({"prompt": "\ud800"})", "not JSON");
  bad(std::string("{\"prompt\": \"x\"}\0{}", 18), "a NUL byte");
  bad("[1]", "must be a JSON object, found a list");
  bad("\"MARKER\"", "must be a JSON object, found a string");
  bad("null", "must be a JSON object, found null");
  bad(R"({"prompt": "x", "prompt": "MARKER"})", "the same name twice");
  bad(R"({"prompt": "x", "\u0070rompt": "MARKER"})", "the same name twice");
  bad(R"({"prompt": "x", "MARKER": )" + std::string(100000, '['), "nested too deeply");
  bad(R"({"prompt": "x", "deep": )" + std::string(32, '[') + std::string(32, ']') + "}", "nested too deeply");
  BOOST_CHECK_NO_THROW(completion(R"({"prompt": "x", "deep": )" + std::string(31, '[') + std::string(31, ']') + "}"));
  std::string ones = "1";
  for (int i = 0; i < 2100000; ++i) ones += ",1";
  bad(R"({"prompt": [)" + ones + "]}", "too many values");
}

// The time of a body grows with its length alone: within seconds, also with sanitizers, where it took many minutes.
BOOST_AUTO_TEST_CASE(bodies_of_many_objects_and_names) {
  std::string objects = "{}", names = "\"x\": 0";
  for (int i = 0; i < 300000; ++i) objects += ",{}", names += str(",\"x", i, "\": 0");
  BOOST_CHECK_NO_THROW(completion("{\"prompt\": \"x\", \"unknown\": [" + objects + "]}"));
  BOOST_CHECK_NO_THROW(completion("{\"prompt\": \"x\", \"unknown\": {" + names + "}}"));
  BOOST_CHECK_EXCEPTION(
      chat("{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"unknown\": {" + names + "}}"), ApiError,
      rejects(400, "", "too many names: at most 20000 are read"));
  BOOST_CHECK_EXCEPTION(chat(R"({"messages": [{"role": "assistant", "tool_calls": [{"type": "function", "id": "a", )"
                             R"("function": {"name": "f", "arguments": "{\"x\": [)" +
                             objects + R"(]}"}}]}]})"),
                        ApiError, rejects(400, "messages[0].tool_calls", "the arguments an object or its text"));
}

BOOST_AUTO_TEST_SUITE_END()
