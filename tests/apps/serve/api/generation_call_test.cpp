// A call in an engine whose passes the test makes itself.
#include "apps/serve/api/generation_call.h"

#include <boost/test/unit_test.hpp>

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
  void end_stream() override { ++answers; }
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

BOOST_AUTO_TEST_SUITE_END()
