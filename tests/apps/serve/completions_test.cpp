// The routes of completions and chat on a tiny model: shapes, streams, and scores against the model itself.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <deque>
#include <limits>

#include "braid/autograd/ops.h"
#include "tests/apps/serve/test_server.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(serve_completions)

using nlohmann::json;

namespace {

using Ids = std::vector<int32_t>;

// log p of every next token of the sequence, computed in one pass without a cache: (T, V).
std::vector<std::vector<double>> direct_scores(const models::LanguageModel& model, const Ids& tokens) {
  NoGrad off;
  const Tensor ids = from_vector(tokens, {1, std::ssize(tokens)});
  const std::vector<double> logits = model.logits(model.hidden(ids)).to(DType::f64).to_vector<double>();
  const size_t v = static_cast<size_t>(model.vocab_size());
  std::vector<std::vector<double>> rows;
  for (size_t t = 0; t < tokens.size(); ++t) {
    std::vector<double> row(logits.begin() + static_cast<std::ptrdiff_t>(t * v),
                            logits.begin() + static_cast<std::ptrdiff_t>((t + 1) * v));
    double sum = 0;
    for (const double x : row) sum += std::exp(x);
    for (double& x : row) x -= std::log(sum);
    rows.push_back(std::move(row));
  }
  return rows;
}

Ids bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

// The rule by which lm-eval's local-completions client scores a continuation: the sum over the entries from the
// context's length to the last but one, and whether each of them is the likeliest.
std::pair<double, bool> lm_eval_score(const json& choice, size_t context) {
  const json& scores = choice["logprobs"];
  double sum = 0;
  bool greedy = true;
  for (size_t i = context; i + 1 < scores["token_logprobs"].size(); ++i) {
    const double value = scores["token_logprobs"][i];
    double largest = -std::numeric_limits<double>::infinity();
    for (const auto& [token, logprob] : scores["top_logprobs"][i].items())
      largest = std::max(largest, logprob.get<double>());
    sum += value;
    greedy = greedy && value == largest;
  }
  return {sum, greedy};
}

std::vector<json> events_of(const std::string& body) {
  std::vector<json> events;
  for (size_t at = 0; at < body.size();) {
    const size_t end = body.find("\n\n", at);
    BOOST_REQUIRE(end != std::string::npos);
    BOOST_REQUIRE(body.substr(at, 6) == "data: ");
    const std::string data = body.substr(at + 6, end - at - 6);
    events.push_back(data == "[DONE]" ? json(data) : json::parse(data));
    at = end + 2;
  }
  return events;
}

}  // namespace

// The request of loglikelihood tasks, word for word, with one prompt and with several of different lengths.
BOOST_AUTO_TEST_CASE(lm_eval_gets_the_scores_of_the_model) {
  TestServer server;
  const std::vector<std::pair<std::string, std::string>> items = {
      {"Hello", " world"}, {"a", "b"}, {"The quick brown fox", " jumps over"}, {"x", "yz"}};
  std::vector<Ids> prompts;
  for (const auto& [context, continuation] : items) prompts.push_back(bytes_of(context + continuation));
  prompts.push_back(prompts[0]);  // and a continuation that is the likeliest one
  for (int i = 0; i < 3; ++i) {
    const auto rows = direct_scores(*server.model, prompts.back());
    const auto& last = rows.back();
    prompts.back().push_back(static_cast<int32_t>(std::max_element(last.begin(), last.end()) - last.begin()));
  }
  const auto check = [&](const json& choice, size_t item) {
    const Ids& tokens = prompts[item];
    const size_t context = item < items.size() ? items[item].first.size() : tokens.size() - 3;
    const auto rows = direct_scores(*server.model, tokens);
    double sum = 0;
    bool greedy = true;
    for (size_t i = context; i < tokens.size(); ++i) {
      const auto& row = rows[i - 1];
      sum += row[static_cast<size_t>(tokens[i])];
      greedy = greedy && row[static_cast<size_t>(tokens[i])] == *std::max_element(row.begin(), row.end());
    }
    const auto [got, got_greedy] = lm_eval_score(choice, context);
    BOOST_TEST(std::abs(got - sum) < 1e-4 * std::abs(sum), got << " " << sum);
    BOOST_TEST(got_greedy == greedy);
    BOOST_TEST(greedy == (item == items.size()));
    const json& scores = choice["logprobs"];
    for (const char* list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"})
      BOOST_TEST(scores[list].size() == tokens.size() + 1);
    BOOST_TEST(scores["token_logprobs"][0].is_null());
    BOOST_TEST(scores["top_logprobs"][0].is_null());
  };
  const json all = json{{"model", "tiny"}, {"prompt", prompts}, {"temperature", 0}, {"max_tokens", 1},
                        {"logprobs", 1},   {"seed", 1234},      {"echo", true}};
  const json together = server.post("/v1/completions", all.dump()).json();
  BOOST_TEST(together["choices"].size() == prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    BOOST_TEST(together["choices"][i]["index"] == i);
    check(together["choices"][i], i);
    json one = all;
    one["prompt"] = json::array({prompts[i]});
    check(server.post("/v1/completions", one.dump()).json()["choices"][0], i);
  }
  // Untokenized requests: one text, and a list of texts.
  json text = all;
  text["prompt"] = items[0].first + items[0].second;
  check(server.post("/v1/completions", text.dump()).json()["choices"][0], 0);
  text["prompt"] = {items[1].first + items[1].second, items[2].first + items[2].second};
  const json texts = server.post("/v1/completions", text.dump()).json();
  check(texts["choices"][0], 1);
  check(texts["choices"][1], 2);
}

BOOST_AUTO_TEST_CASE(the_last_entry_is_there_even_for_the_end_of_the_text) {
  TestServer server({}, {.ends = {}});
  // Every byte ends the text here: the entry of the token that was drawn stays, its text does not.
  for (const int max_tokens : {0, 1, 5}) {
    const json body = {
        {"prompt", Ids{72, 101, 108}}, {"max_tokens", max_tokens}, {"temperature", 0}, {"logprobs", 2}, {"echo", true},
        {"ignore_eos", true}};
    const json choice = server.post("/v1/completions", body.dump()).json()["choices"][0];
    BOOST_TEST(choice["logprobs"]["tokens"].size() == static_cast<size_t>(3 + max_tokens));
    BOOST_TEST(choice["finish_reason"] == "length");
    if (max_tokens == 0) BOOST_TEST(choice["text"] == "Hel");
  }
}

BOOST_AUTO_TEST_CASE(the_tokenizer_of_lm_eval) {
  TestServer server;
  for (const std::string prefix : {"", "/v1"}) {
    BOOST_TEST(Client(server.port()).get(prefix + "/tokenizer_info").json()["eos_token"] == "<|endoftext|>");
    const auto tokens = [&](const std::string& body) {
      return server.post(prefix + "/tokenize", body).json()["tokens"].get<Ids>();
    };
    BOOST_TEST((tokens(R"({"prompt": "<|endoftext|>", "add_special_tokens": false})") == Ids{256}));
    BOOST_TEST((tokens(R"({"prompt": "a<|endoftext|>b", "add_special_tokens": false})") == Ids{97, 256, 98}));
    BOOST_TEST((tokens(R"({"content": "<|", "parse_special": false})") == Ids{60, 124}));
    BOOST_TEST(server.post(prefix + "/detokenize", R"({"tokens": [72, 105, 256, 226, 130]})").json()["prompt"] ==
               "Hi<|endoftext|>\xEF\xBF\xBD");
  }
}

// A stream has the text, the scores and the end of the answer that does not stream.
BOOST_AUTO_TEST_CASE(streams_are_the_same_text_in_pieces) {
  TestServer server;
  for (const int seed : {1, 2, 3, 4}) {
    json body = {{"prompt", {"Once", "upon"}},
                 {"n", 2},
                 {"max_tokens", 30},
                 {"temperature", 1.5},
                 {"seed", seed},
                 {"logprobs", 2},
                 {"echo", seed % 2 == 0},
                 {"stop", {"\xc3\xa9", "ab"}},
                 {"stream_options", {{"include_usage", true}}}};
    const json whole = server.post("/v1/completions", body.dump()).json();
    body["stream"] = true;
    const Answer answer = server.post("/v1/completions", body.dump());
    BOOST_TEST(answer.fields.at("content-type") == "text/event-stream");
    const std::vector<json> events = events_of(answer.body);
    BOOST_TEST(events.back() == "[DONE]");
    BOOST_TEST(events[events.size() - 2]["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"]);
    BOOST_TEST(events[events.size() - 2]["choices"].empty());
    for (size_t i = 0; i < 4; ++i) {
      std::string text, reason;
      json scores = {{"tokens", json::array()},
                     {"token_logprobs", json::array()},
                     {"top_logprobs", json::array()},
                     {"text_offset", json::array()}};
      for (size_t k = 0; k + 2 < events.size(); ++k) {
        const json& piece = events[k]["choices"][0];
        BOOST_TEST(events[k]["usage"].is_null());
        if (piece["index"] != i) continue;
        BOOST_TEST(reason == "");
        text += piece["text"].get<std::string>();
        if (!piece["finish_reason"].is_null()) reason = piece["finish_reason"];
        if (piece["logprobs"].is_null()) continue;
        for (auto& [name, list] : scores.items())
          list.insert(list.end(), piece["logprobs"][name].begin(), piece["logprobs"][name].end());
      }
      BOOST_TEST(text == whole["choices"][i]["text"]);
      BOOST_TEST(reason == whole["choices"][i]["finish_reason"]);
      BOOST_TEST(scores == whole["choices"][i]["logprobs"]);
    }
    BOOST_TEST(whole["choices"][0]["text"] != whole["choices"][1]["text"]);  // draws of their own
  }
}

BOOST_AUTO_TEST_CASE(chats) {
  TestServer server;
  json body = {{"messages", {{{"role", "system"}, {"content", "Be kind."}}, {{"role", "user"}, {"content", "Hi"}}}},
               {"max_tokens", 12},
               {"temperature", 0},
               {"logprobs", true},
               {"top_logprobs", 2}};
  const json whole = server.post("/v1/chat/completions", body.dump()).json();
  BOOST_TEST(whole["object"] == "chat.completion");
  const json& choice = whole["choices"][0];
  BOOST_TEST(choice["message"]["role"] == "assistant");
  // The text of the template as a plain prompt gives the same answer.
  const json plain = {{"prompt", "system: Be kind.\nuser: Hi\nassistant: "},
                      {"max_tokens", 12},
                      {"temperature", 0},
                      {"stop", "\n"},
                      {"logprobs", 2}};
  const json same = server.post("/v1/completions", plain.dump()).json();
  BOOST_TEST(choice["message"]["content"] == same["choices"][0]["text"]);
  BOOST_TEST(whole["usage"] == same["usage"]);
  const json& scores = choice["logprobs"]["content"];
  BOOST_TEST(scores.size() == same["choices"][0]["logprobs"]["tokens"].size());
  for (size_t i = 0; i < scores.size(); ++i) {
    BOOST_TEST(scores[i]["logprob"] == same["choices"][0]["logprobs"]["token_logprobs"][i]);
    BOOST_TEST(scores[i]["top_logprobs"].size() == 2U);
    BOOST_TEST(scores[i]["bytes"].size() > 0U);
  }
  body["stream"] = true;
  const std::vector<json> events = events_of(server.post("/v1/chat/completions", body.dump()).body);
  BOOST_TEST(events[0]["object"] == "chat.completion.chunk");
  BOOST_TEST(events[0]["choices"][0]["delta"]["role"] == "assistant");
  std::string text;
  for (const json& event : events)
    if (event.is_object()) text += event["choices"][0]["delta"].value("content", "");
  BOOST_TEST(text == choice["message"]["content"]);
  // Without max_tokens: up to the end of the context.
  json open = {{"messages", {{{"role", "user"}, {"content", "x"}}}}, {"temperature", 0}, {"ignore_eos", true}};
  BOOST_TEST(server.post("/v1/chat/completions", open.dump()).status == 200);
  open["messages"][0]["content"] = std::string(70, 'x');
  BOOST_TEST(server.post("/v1/chat/completions", open.dump()).status == 400);
}

// Ids of prompt, text and scores, whole and in a stream; a text continues behind them as if it had never been
// interrupted.
BOOST_AUTO_TEST_CASE(texts_go_on_from_their_tokens) {
  TestServer server;
  const json chat = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}},
                     {"max_tokens", 8},
                     {"temperature", 0},
                     {"logprobs", true},
                     {"top_logprobs", 3},
                     {"return_token_ids", true},
                     {"ignore_eos", true},
                     {"stop", json::array()}};
  const json text = {{"prompt", "Hi"}, {"max_tokens", 8},          {"temperature", 0},
                     {"logprobs", 3},  {"return_token_ids", true}, {"ignore_eos", true}};
  for (const bool is_chat : {true, false}) {
    const std::string path = is_chat ? "/v1/chat/completions" : "/v1/completions";
    const json whole = server.post(path, (is_chat ? chat : text).dump()).json();
    const json& choice = whole["choices"][0];
    const Ids made = choice["token_ids"].get<Ids>();
    const Ids prompt = (is_chat ? whole : choice)["prompt_token_ids"].get<Ids>();
    BOOST_REQUIRE(made.size() >= 4U);
    BOOST_TEST(prompt == bytes_of(is_chat ? "user: Hi\nassistant: " : "Hi"), boost::test_tools::per_element());
    for (size_t i = 0; i < made.size(); ++i) {
      const json& entry = choice["logprobs"]["content"][i];
      BOOST_TEST(entry["token_id"] == made[i]);
      BOOST_TEST(entry["top_logprobs"].size() == 3U);
      BOOST_TEST(entry["top_logprobs"][0]["token_id"] == made[i]);  // temperature 0
    }
    json stream = is_chat ? chat : text;
    stream["stream"] = true;
    Ids streamed, streamed_prompt;
    for (const json& event : events_of(server.post(path, stream.dump()).body)) {
      if (!event.is_object()) continue;
      const json& piece = event["choices"][0];
      for (const int32_t id : piece.value("token_ids", Ids{})) streamed.push_back(id);
      for (const int32_t id : (is_chat ? event : piece).value("prompt_token_ids", Ids{})) streamed_prompt.push_back(id);
    }
    BOOST_TEST(streamed == made, boost::test_tools::per_element());
    BOOST_TEST(streamed_prompt == prompt, boost::test_tools::per_element());
    // From the third token on.
    json rest = is_chat ? chat : text;
    rest["max_tokens"] = made.size() - 3;
    if (is_chat) {
      rest["answer_token_ids"] = Ids(made.begin(), made.begin() + 3);
    } else {
      Ids ids = prompt;
      ids.insert(ids.end(), made.begin(), made.begin() + 3);
      rest["prompt"] = ids;
    }
    const json again = server.post(path, rest.dump()).json()["choices"][0];
    BOOST_TEST(again["token_ids"].get<Ids>() == Ids(made.begin() + 3, made.end()), boost::test_tools::per_element());
    BOOST_TEST(again["logprobs"]["content"][0] == choice["logprobs"]["content"][3]);
  }
  json plain = text;
  plain.erase("return_token_ids");
  const json choice = server.post("/v1/completions", plain.dump()).json()["choices"][0];
  for (const char* name : {"token_ids", "prompt_token_ids"}) BOOST_TEST(!choice.contains(name));
  BOOST_TEST(!choice["logprobs"].contains("content"));
}

BOOST_AUTO_TEST_CASE(an_answer_that_has_ended_does_not_go_on) {
  TestServer server;  // id 256 ends a text
  json body = {
      {"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"max_tokens", 2}, {"answer_token_ids", {66, 256}}};
  const auto response = server.post("/v1/chat/completions", body.dump());
  BOOST_TEST(response.status == 400);
  BOOST_TEST(response.json()["error"]["param"] == "answer_token_ids");
  body["answer_token_ids"] = {66, 67};
  BOOST_TEST(server.post("/v1/chat/completions", body.dump()).status == 200);
}

BOOST_AUTO_TEST_CASE(the_answer_does_not_depend_on_the_others) {
  TestServer server;
  std::vector<std::string> bodies, alone;
  for (int i = 0; i < 12; ++i) {
    const json body = {{"prompt", "nonce " + std::to_string(i * 7919)},
                       {"max_tokens", 20},
                       {"temperature", i % 3 * 0.5},
                       {"seed", i},
                       {"logprobs", 1},
                       {"echo", i % 2 == 0}};
    bodies.push_back(body.dump());
    alone.push_back(server.post("/v1/completions", bodies.back()).json()["choices"].dump());
  }
  std::deque<Client> clients;
  for (const std::string& body : bodies) {
    clients.emplace_back(server.port());
    clients.back().send(Client::post_text("/v1/completions", body));
  }
  for (size_t i = 0; i < clients.size(); ++i) {
    const json choices = clients[i].answer().json()["choices"];
    if (server.service.invariant())
      BOOST_TEST(choices.dump() == alone[i]);
    else
      BOOST_TEST(choices[0]["text"] == json::parse(alone[i])[0]["text"]);
  }
}

BOOST_AUTO_TEST_CASE(one_model_with_one_name) {
  TestServer server({}, {.own_chat = false, .beginnings = {"Once there", "The \"fox"}});
  const json models = Client(server.port()).get("/v1/models").json();
  BOOST_TEST(models["data"].size() == 1U);
  BOOST_TEST(models["data"][0]["id"] == "tiny");
  BOOST_TEST(models["data"][0]["max_model_len"] == 64);
  BOOST_TEST(models["data"][0]["own_chat_template"] == false);
  BOOST_TEST(models["data"][0]["beginnings"] == json({"Once there", "The \"fox"}));
  for (const char* path : {"/v1/models/tiny", "/v1/models/%74iny", "/v1//models/tiny/?a=b", "/v1/models/"}) {
    const json one = Client(server.port()).get(path).json();
    BOOST_TEST((one == models["data"][0] || one == models), path);
  }
  for (const char* path :
       {"/v1/models/MARKER", "/v1/models/tiny/x", "/v1/models/%zz", "/v1/models/%4", "/v1/models/TINY"}) {
    const Answer none = Client(server.port()).get(path);
    BOOST_TEST(none.status == 404);
    BOOST_TEST(none.json()["error"]["code"] == "model_not_found");
    BOOST_TEST(none.body.find("MARKER") == std::string::npos);
  }
  const json answer = server.post("/v1/completions", R"({"prompt": "x", "model": "MARKER"})").json();
  BOOST_TEST(answer["model"] == "tiny");
  BOOST_TEST(answer["object"] == "text_completion");
  BOOST_TEST(answer["usage"]["prompt_tokens"] == 1);
  BOOST_TEST(answer["usage"]["total_tokens"] ==
             answer["usage"]["prompt_tokens"].get<int>() + answer["usage"]["completion_tokens"].get<int>());
  BOOST_TEST(server.metric("braid_prompt_tokens_total") == 1);
  BOOST_TEST(server.metric("braid_http_answers_total{route=\"/v1/completions\",status=\"200\"}") == 1);
}

BOOST_AUTO_TEST_SUITE_END()
