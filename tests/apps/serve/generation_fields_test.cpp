// Fields of completions that decide how long texts become and which tokens are drawn.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <functional>
#include <ranges>

#include "tests/apps/serve/test_server.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(serve_generation_fields)

using nlohmann::json;

BOOST_AUTO_TEST_CASE(prompts_and_new_tokens_must_fit_the_context) {
  TestServer server;
  const auto status = [&](size_t prompt, const std::string& more) {
    const Answer answer = server.post("/v1/completions", R"({"temperature": 0, "ignore_eos": true, "prompt": ")" +
                                                             std::string(prompt, 'x') + "\"" + more + "}");
    if (answer.status != 200) BOOST_TEST(answer.json()["error"]["code"] == "context_length_exceeded");
    if (answer.status == 200) BOOST_TEST(answer.json()["choices"][0]["finish_reason"] == "length");
    return answer.status == 200 ? answer.json()["usage"]["completion_tokens"].get<int>() : -answer.status;
  };
  BOOST_TEST(status(60, R"(, "max_tokens": 4)") == 4);
  BOOST_TEST(status(60, R"(, "max_tokens": 5)") == 4);  // as many as fit
  BOOST_TEST(status(60, R"(, "max_tokens": 4096)") == 4);
  BOOST_TEST(status(50, R"(, "max_tokens": -1)") == 14);
  BOOST_TEST(status(64, R"(, "max_tokens": 0)") == 0);
  BOOST_TEST(status(64, R"(, "max_tokens": 1)") == 0);
  BOOST_TEST(status(65, "") == -400);
  BOOST_TEST(status(1 << 20, "") == -400);
  BOOST_TEST(status(60, "") == 4);
  BOOST_TEST(status(10, "") == 16);
  const json turn = {{"role", "user"}, {"content", std::string(65, 'x')}};
  const json chat = server.post("/v1/chat/completions", json{{"messages", {turn}}}.dump()).json();
  BOOST_TEST(chat["error"]["code"] == "context_length_exceeded");
  BOOST_TEST(chat["error"]["param"] == "messages");
  const json long_turn = {{"role", "user"}, {"content", std::string(1 << 20, 'x')}};  // is not cut into tokens at all
  const json too_long = server.post("/v1/chat/completions", json{{"messages", {long_turn}}}.dump()).json();
  BOOST_TEST(too_long["error"]["message"].get<std::string>().starts_with("the text has 1048576 bytes"));
  BOOST_TEST(too_long["error"]["param"] == "messages");
  // Each prompt has its own room.
  const json both =
      server
          .post("/v1/completions",
                json{{"prompt", {std::string(60, 'x'), std::string(50, 'x')}}, {"max_tokens", 9}, {"ignore_eos", true}}
                    .dump())
          .json();
  BOOST_TEST(both["usage"]["completion_tokens"] == 4 + 9);
}

BOOST_AUTO_TEST_CASE(a_prompt_without_tokens_is_a_new_document) {
  TestServer server;
  const auto text = [&](const std::string& prompt) {
    const Answer answer = server.post("/v1/completions", "{" + prompt + R"("temperature": 0, "max_tokens": 8})");
    BOOST_TEST(answer.status == 200);
    return answer.json()["choices"][0]["text"].get<std::string>();
  };
  const std::string begun = text(R"("prompt": [256], )");
  for (const char* prompt : {"", "\"prompt\": null, ", R"("prompt": "", )", "\"prompt\": [], ", R"("prompt": [""], )"})
    BOOST_TEST(text(prompt) == begun);
}

BOOST_AUTO_TEST_CASE(penalties_and_biases_change_the_draws) {
  TestServer server;
  const auto tokens = [&](const json& more) {
    json body = {
        {"prompt", "Hi"}, {"max_tokens", 20}, {"temperature", 0}, {"ignore_eos", true}, {"return_token_ids", true}};
    body.update(more);
    return server.post("/v1/completions", body.dump()).json()["choices"][0]["token_ids"].get<std::vector<int32_t>>();
  };
  const std::vector<int32_t> plain = tokens(json::object());
  BOOST_TEST((tokens({{"temperature", 1}, {"top_p", 0}}) == plain));
  BOOST_TEST((tokens({{"logit_bias", {{"65", 100}}}}) == std::vector<int32_t>(20, 65)));
  for (const int32_t t : tokens({{"logit_bias", {{std::to_string(plain[0]), -100}}}})) BOOST_TEST(t != plain[0]);
  // A penalty makes two tokens far above the others take turns; its negative keeps to one.
  const auto surplus = [&](const char* name, double penalty) {
    const std::vector<int32_t> ids = tokens({{"logit_bias", {{"65", 100}, {"66", 100}}}, {name, penalty}});
    BOOST_TEST(std::ranges::count(ids, 65) + std::ranges::count(ids, 66) == 20);
    return std::abs(std::ranges::count(ids, 65) - std::ranges::count(ids, 66));
  };
  BOOST_TEST(surplus("frequency_penalty", 2) < surplus("frequency_penalty", -2));
  // A lead of one token over another that is smaller than the penalty; which bias makes it depends on the weights.
  BOOST_TEST(std::ranges::any_of(std::views::iota(85, 101), [&](int bias) {
    const json pair = {{"65", 95}, {"66", bias}};
    return tokens({{"logit_bias", pair}, {"presence_penalty", 2}}) != tokens({{"logit_bias", pair}});
  }));
}

BOOST_AUTO_TEST_CASE(the_best_of_several_texts) {
  TestServer server;
  json body = {{"prompt", {"Once", "upon"}}, {"n", 4},    {"max_tokens", 5},
               {"temperature", 1.5},         {"seed", 3}, {"logprobs", 0},
               {"logit_bias", {{"256", 5}}}};
  const json all = server.post("/v1/completions", body.dump()).json();
  body["n"] = 2, body["best_of"] = 4;
  const json best = server.post("/v1/completions", body.dump()).json();
  BOOST_TEST(best["choices"].size() == 4U);
  BOOST_TEST(best["usage"]["completion_tokens"] == all["usage"]["completion_tokens"]);
  const auto score = [](const json& choice) {
    double sum = 0;  // with the score of an end
    for (const json& x : choice["logprobs"]["token_logprobs"]) sum += x.get<double>();
    return sum / static_cast<double>(choice["logprobs"]["token_logprobs"].size());
  };
  for (size_t p = 0; p < 2; ++p) {
    std::vector<double> scores;
    for (size_t i = 0; i < 4; ++i) scores.push_back(score(all["choices"][4 * p + i]));
    std::ranges::sort(scores, std::greater<>());
    for (size_t i = 0; i < 2; ++i) {
      BOOST_TEST(best["choices"][2 * p + i]["index"] == 2 * p + i);
      BOOST_TEST(std::fabs(score(best["choices"][2 * p + i]) - scores[i]) < 1e-9);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
