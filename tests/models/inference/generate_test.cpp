#include "braid/models/inference/generate.h"

#include <boost/test/unit_test.hpp>

#include "braid/autograd/ops.h"
#include "tests/models/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(generate)

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_text_and_stops_where_asked) {
  models::Dcformer model(small_config(), {1, 0});
  std::vector<int32_t> prompt{10, 20, 30};
  models::Generated a = models::generate(model, prompt, 12, {.seed = 4}),
                    b = models::generate(model, prompt, 12, {.seed = 4});
  BOOST_TEST(a.tokens == b.tokens, boost::test_tools::per_element());
  BOOST_TEST(a.tokens.size() == 12u);
  int32_t third = a.tokens[2];
  models::Generated c = models::generate(model, prompt, 12, {.seed = 4}, {third});
  BOOST_TEST((c.reason == models::StopReason::end_of_text));
  BOOST_TEST(c.tokens.size() <= 2u);
  // Whichever of several ends comes first.
  for (const std::vector<int32_t>& ends : {std::vector<int32_t>{third, a.tokens[1]}, {a.tokens[1], 300, third}})
    BOOST_TEST(models::generate(model, prompt, 12, {.seed = 4}, ends).tokens.size() <= 1u);
  models::Generated d = models::generate(model, prompt, 100, {.seed = 4});
  BOOST_TEST((d.reason == models::StopReason::context_full));  // block_size 32
  int calls = 0;
  models::Generated e = models::generate(model, prompt, 12, {.seed = 4}, {}, [&](int32_t) { return ++calls < 5; });
  BOOST_TEST(e.tokens.size() == 5u);
}

BOOST_AUTO_TEST_CASE(prompts_and_lengths_out_of_range) {
  models::Dcformer model(small_config(), {1, 0});
  const std::vector<int32_t> prompt{10, 20, 30};
  BOOST_TEST((models::generate(model, prompt, INT64_MAX, {}).reason == models::StopReason::context_full));
  BOOST_TEST(models::generate(model, prompt, -5, {}).tokens.empty());
  BOOST_TEST(throws_with([&] { models::generate(model, {}, 3, {}); }, "the prompt is empty"));
  BOOST_TEST(throws_with([&] { models::generate(model, std::vector<int32_t>(33, 1), 3, {}); },
                         "the prompt has 33 tokens, the model's longest sequence is 32"));
  BOOST_TEST(throws_with(
      [&] {
        models::generate(model, std::vector<int32_t>{1, 258}, 3, {});
      },
      "expected 0 to 257, found 258 at position 1"));
}

// Turns of given and of generated tokens are one text: each draw is that of generate() on everything before.
BOOST_AUTO_TEST_CASE(a_conversation_is_one_text) {
  models::Dcformer model(small_config(), {1, 0});
  model.to(DType::f64);
  const models::SamplingOptions options{.temperature = 0.9, .seed = 3};
  models::Conversation text(model, 32);
  std::vector<int32_t> all;
  int64_t prompt_tokens = 0;
  for (const std::vector<int32_t>& turn : {std::vector<int32_t>{7, 8, 9}, {11}, {}, {1, 2, 3, 4}}) {
    all.insert(all.end(), turn.begin(), turn.end());
    text.append(turn);
    const models::Generated reply = text.generate(4, options), whole = models::generate(model, all, 4, options);
    BOOST_TEST(reply.tokens == whole.tokens, boost::test_tools::per_element());
    BOOST_TEST(reply.steps == 3);
    prompt_tokens += reply.prompt_tokens;
    all.insert(all.end(), reply.tokens.begin(), reply.tokens.end());
    BOOST_TEST(text.tokens() == all, boost::test_tools::per_element());
  }
  BOOST_TEST(prompt_tokens == 8 + 3);  // each token is computed once; the last one of a reply with the next turn
  BOOST_TEST(text.remaining() == 32 - 24);
  const models::Generated last = text.generate(100, options);
  BOOST_TEST((last.reason == models::StopReason::context_full));
  BOOST_TEST(last.tokens.size() == 9u);  // the last one has no place in the cache
  BOOST_TEST(throws_with([&] { text.append(std::vector<int32_t>{1}); }, "the model's longest sequence is 32"));
  BOOST_TEST((text.generate(1, options).reason == models::StopReason::context_full));
}

BOOST_AUTO_TEST_CASE(greedy_steps_agree_with_the_full_pass) {
  models::Dcformer model(small_config(), {1, 0});
  NoGrad off;
  std::vector<int32_t> seen{5, 6, 7};
  models::Generated g = models::generate(model, seen, 20, {.temperature = 0});
  for (int32_t token : g.tokens) {
    Tensor logits = model.logits(model.hidden(from_vector(seen, {1, static_cast<int64_t>(seen.size())})));
    BOOST_TEST(argmax(logits).to_vector<int64_t>().back() == token);
    seen.push_back(token);
  }
}

BOOST_AUTO_TEST_SUITE_END()
