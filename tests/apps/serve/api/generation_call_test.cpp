// A call in an engine whose passes the test makes itself.
#include "apps/serve/api/generation_call.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "tests/apps/generate/byte_model.h"

using namespace braid;
using namespace braid::apps::serve;

BOOST_AUTO_TEST_SUITE(serve_generation_call)

namespace {

struct LeavingClient final : Reply {
  void send(Response) override { ++answers; }
  void stream(std::string) override {
    if (call) std::exchange(call, nullptr)->cancel();
  }
  void end_stream(TokenCounts) override { ++answers; }
  std::shared_ptr<Ticket> call;
  int answers = 0;
};

}  // namespace

// The client leaves while a pass is made: all of its texts are cancelled, also those that the pass brings news of.
BOOST_AUTO_TEST_CASE(a_text_whose_client_left_is_cancelled_not_finished) {
  const models::text::ByteTokenizer tokenizer;
  const auto model = models::as_language_model(test::byte_model());
  models::GenerationEngine engine(*model);
  const auto client = std::make_shared<LeavingClient>();
  GenerationCall::Settings settings{.max_tokens = 40, .context = 64, .prompts = {{1, 2}, {3}}};
  settings.fields.stream = true;
  const auto call = std::make_shared<GenerationCall>(engine, tokenizer, settings, client);
  client->call = call;
  call->start();
  while (engine.step()) continue;
  const models::EngineLoad load = engine.load();
  BOOST_TEST(load.cancelled == 2);
  BOOST_TEST(load.finished == 0);
  BOOST_TEST(client->answers == 0);
}

BOOST_AUTO_TEST_CASE(a_call_that_was_cancelled_before_it_starts_asks_for_nothing) {
  const models::text::ByteTokenizer tokenizer;
  const auto model = models::as_language_model(test::byte_model());
  models::GenerationEngine engine(*model);
  const auto client = std::make_shared<LeavingClient>();
  const GenerationCall::Settings settings{.max_tokens = 40, .context = 64, .prompts = {{1, 2}, {3}}};
  const auto call = std::make_shared<GenerationCall>(engine, tokenizer, settings, client);
  call->cancel();
  call->start();
  BOOST_TEST(!engine.step());
  BOOST_TEST(engine.load().cancelled == 0);
  BOOST_TEST(client->answers == 0);
}

// A text, and one that a stop string ends; the log gets the same counts.
BOOST_AUTO_TEST_CASE(texts_are_measured) {
  struct Reader final : Reply {
    void send(Response response) override { tokens = response.tokens; }
    void stream(std::string) override {}
    void end_stream(TokenCounts counts) override { tokens = counts; }
    TokenCounts tokens;
  };
  const models::text::ByteTokenizer tokenizer;
  const auto model = models::as_language_model(test::byte_model());
  models::GenerationEngine engine(*model);
  TextHistograms texts;
  const auto has = [&](const std::string& line) { return texts.text().find("\n" + line + "\n") != std::string::npos; };
  for (const bool stopping : {false, true}) {
    const auto reader = std::make_shared<Reader>();
    GenerationCall::Settings settings{.max_tokens = 6, .context = 64, .prompts = {{1, 2, 3}}, .texts = &texts};
    settings.fields.sampling.temperature = 0;
    settings.fields.stream = stopping;
    if (stopping)  // every character that the model could write
      for (int c = 1; c < 128; ++c) settings.fields.stops.push_back(std::string(1, static_cast<char>(c)));
    if (stopping) settings.fields.stops.push_back("\uFFFD");
    std::make_shared<GenerationCall>(engine, tokenizer, settings, reader)->start();
    while (engine.step()) continue;
    BOOST_TEST(reader->tokens.prompt == 3);
    BOOST_TEST((stopping ? reader->tokens.completion < 6 : reader->tokens.completion == 6));
    BOOST_TEST(has(stopping ? "braid_request_prompt_tokens_count 2" : "braid_request_prompt_tokens_count 1"));
  }
  BOOST_TEST(has("braid_request_prompt_tokens_sum 6"));
  BOOST_TEST(has("braid_time_to_first_token_seconds_count 2"));
  BOOST_TEST(has("braid_request_generation_tokens_bucket{le=\"10\"} 2"));
  BOOST_TEST(has("braid_request_generation_tokens_bucket{le=\"5\"} 1"));
}

// What the texts of a prompt share is no part of the prompt that a cache had.
BOOST_AUTO_TEST_CASE(a_prompt_of_several_texts_was_not_cached) {
  struct Reader final : Reply {
    void send(Response response) override { body = response.body; }
    void stream(std::string) override {}
    void end_stream(TokenCounts) override {}
    std::string body;
  };
  const models::text::ByteTokenizer tokenizer;
  const auto model = models::as_language_model(test::byte_model());
  models::GenerationEngine engine(*model);
  const auto cached = [&] {
    const auto reader = std::make_shared<Reader>();
    GenerationCall::Settings settings{.max_tokens = 2, .context = 64, .prompts = {std::vector<int32_t>(40, 7)}};
    settings.fields.n = settings.fields.best_of = 3;
    std::make_shared<GenerationCall>(engine, tokenizer, settings, reader)->start();
    while (engine.step()) continue;
    const auto usage = nlohmann::json::parse(reader->body)["usage"];
    BOOST_TEST(usage["prompt_tokens"] == 40);
    return usage["prompt_tokens_details"]["cached_tokens"].get<int64_t>();
  };
  BOOST_TEST(cached() == 0);
  const int64_t again = cached();
  BOOST_TEST(again > 0);
  BOOST_TEST(again <= 40);
}

BOOST_AUTO_TEST_SUITE_END()
