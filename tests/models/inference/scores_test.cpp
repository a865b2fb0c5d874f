// Log-probabilities of tokens: of one row, of prompts and of new tokens, beside the logits of a full pass.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "braid/autograd/ops.h"
#include "braid/models/inference/token_score.h"
#include "tests/models/inference/hash_model.h"
#include "tests/models/made_models.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(scores)

namespace {

// log_softmax (T, V) of the logits of one pass over a text.
std::vector<double> log_probabilities(const models::LanguageModel& model, const std::vector<int32_t>& text) {
  const NoGrad off;
  const Tensor logits = model.logits(model.hidden(from_vector(text, {1, std::ssize(text)})));
  return (logits - logsumexp(logits, 2, true)).to(DType::f64).to_vector<double>();
}

const std::vector<int32_t> kPrompt = {7, 1, 90, 13, 250, 3, 3, 61, 17, 200, 45, 8, 77, 5};

}  // namespace

BOOST_AUTO_TEST_CASE(of_one_row) {
  const std::vector<float> logits = {1, 3, 2, 3, -INFINITY};
  const double total = std::log(std::exp(1.0) + 2 * std::exp(3.0) + std::exp(2.0));
  const models::TokenScore score = models::token_score(logits, 2, 3, 0);
  BOOST_TEST(score.token == 2);
  BOOST_TEST(std::abs(score.logprob - (2 - total)) < 1e-12);
  BOOST_REQUIRE(score.top.size() == 3u);
  BOOST_TEST(score.top[0].first == 1);  // equal ones in order of their ids
  BOOST_TEST(score.top[1].first == 3);
  BOOST_TEST(score.top[2].first == 2);
  BOOST_TEST(score.top[2].second == score.logprob);
  BOOST_TEST(models::token_score(logits, 4, 9, 0).logprob == -INFINITY);
  BOOST_TEST(models::token_score(logits, 4, 9, 0).top.size() == 5u);
  const std::vector<float> large = {3e38f, -3e38f};
  BOOST_TEST(models::token_score(large, 0, 0, 0).logprob == 0.0);
  BRAID_CHECK_FAILS(models::token_score(std::vector<float>{0, NAN}, 0, 0, 12), ErrorKind::numerical, "for position 12",
                    "token id 1 is NaN");
}

BOOST_AUTO_TEST_CASE(of_a_prompt_are_those_of_a_full_pass) {
  const models::Dcformer model = small_model();
  const std::vector<double> want = log_probabilities(model, kPrompt);
  const auto V = static_cast<size_t>(model.vocab_size());
  for (const int64_t rows : {1, 3, 100}) {
    models::GenerationEngine engine(model, {.sequences = 1, .rows = rows});
    for (const int64_t from : {1, 2, 9, 13, 14, 20}) {  // kept prefixes are shared where no score needs them
      Told told;
      engine.submit(told.listen({.prompt = kPrompt, .max_tokens = 0, .top = 2, .score_from = from}));
      engine.run();
      BOOST_TEST((told.last.reason == models::StopReason::length));
      BOOST_TEST(told.updates == 1);
      BOOST_TEST(told.last.prompt_tokens == 14);
      const auto first = static_cast<size_t>(std::min<int64_t>(from, 14));
      BOOST_REQUIRE(told.prompt_scores.size() == 14 - first);
      for (size_t t = first; t < 14; ++t) {
        const models::TokenScore& score = told.prompt_scores[t - first];
        const auto row = std::span(want).subspan((t - 1) * V, V);
        BOOST_TEST(score.token == kPrompt[t]);
        BOOST_TEST(std::abs(score.logprob - row[static_cast<size_t>(kPrompt[t])]) < 2e-6);
        BOOST_TEST(score.top.size() == 2u);
        BOOST_TEST(score.top[0].first == std::ranges::max_element(row) - row.begin());
      }
    }
  }
}

// More rows than get logits at a time, on the model that is exact.
BOOST_AUTO_TEST_CASE(of_long_prompts_in_any_pieces_are_equal) {
  const HashModel model;
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 64; ++i) prompt.push_back(i * 13 % 48);
  const models::GenerationRequest request{.prompt = prompt, .max_tokens = 0, .top = 1, .score_from = 1};
  const Told want = alone(model, request);
  BOOST_REQUIRE(want.prompt_scores.size() == 63u);
  const models::TokenScore by_hand =
      models::token_score(hash_logits(model, {prompt.begin(), prompt.begin() + 40}), prompt[40], 1, 40);
  BOOST_TEST(want.prompt_scores[39].logprob == by_hand.logprob);
  models::GenerationEngine engine(model, {.sequences = 3, .rows = 192, .share_prefixes = false});
  std::vector<Told> told(3);
  for (Told& one : told) engine.submit(one.listen(request));
  engine.run();
  BOOST_TEST(engine.load().passes == 1);
  for (const Told& one : told) BOOST_TEST(equal(one, want));
}

// Scores are of the model's distribution: neither temperature nor penalty nor the ids of a tokenizer change them.
BOOST_AUTO_TEST_CASE(of_new_tokens_are_before_temperature_and_penalties) {
  const HashModel model;
  const std::vector<int32_t> prompt = {3, 9, 4};
  const models::SamplingOptions sampling{
      .temperature = 2, .top_k = 9, .repetition_penalty = 1.5, .seed = 3, .vocabulary = 40};
  const Told told = alone(model, {.prompt = prompt, .max_tokens = 6, .sampling = sampling, .logprobs = true, .top = 3});
  BOOST_REQUIRE(told.scores.size() == 6u);
  std::vector<int32_t> text = prompt;
  for (size_t i = 0; i < 6; ++i) {
    const models::TokenScore want = models::token_score(hash_logits(model, text), told.tokens[i], 3, text.size());
    BOOST_TEST(equal({told.scores[i]}, {want}));
    text.push_back(told.tokens[i]);
  }
  // An end token has a score and is no token.
  const Told ended = alone(
      model, {.prompt = prompt, .max_tokens = 6, .sampling = sampling, .ends = {told.tokens[2]}, .logprobs = true});
  BOOST_TEST(ended.scores.back().token == told.tokens[2]);
  BOOST_TEST(ended.scores.size() == ended.tokens.size() + 1);
  BOOST_TEST((ended.last.reason == models::StopReason::end_of_text));
}

BOOST_AUTO_TEST_SUITE_END()
