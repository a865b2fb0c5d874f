// Under StrictBits the log-probability of a token given its prefix has the same bits in training's forward pass and in
// an engine, however the prompt is cut and whatever else it computes, and in decoding.
#include "braid/tensor/strict.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <deque>

#include "braid/autograd/detail/token_losses.h"
#include "braid/models/inference/engine.h"
#include "braid/tensor/cpu/attention/variants.h"
#include "braid/tensor/cpu/instruction_sets.h"
#include "braid/tensor/parallel.h"
#include "tests/models/inference/hash_model.h"
#include "tests/models/made_models.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(strict)

using models::GenerationEngine;
using Text = std::vector<int32_t>;

namespace {

Text random_text(int64_t length, int64_t vocabulary, uint64_t seed) {
  Text text;
  for (int64_t t = 0; t < length; ++t)
    text.push_back(
        static_cast<int32_t>(random_bits(static_cast<uint64_t>(t), {seed, 11}) % static_cast<uint64_t>(vocabulary)));
  return text;
}

// Log-probabilities of the tokens 1, 2, ... of equally long texts, by the forward pass of training.
std::vector<double> of_training(const models::LanguageModel& model, const std::vector<Text>& texts) {
  Text ids, targets;
  for (const Text& text : texts) {
    ids.insert(ids.end(), text.begin(), text.end() - 1);
    targets.insert(targets.end(), text.begin() + 1, text.end());
  }
  const Shape shape = {std::ssize(texts), std::ssize(texts[0]) - 1};
  const StrictBits strict;
  const TokenLosses losses;
  const Tensor loss = model.loss_sum(from_vector(ids, shape), from_vector(targets, shape));
  BOOST_REQUIRE(requires_grad(loss));
  std::vector<double> logprobs = losses.terms().to_vector<double>();
  for (double& x : logprobs) x = -x;
  return logprobs;
}

// It computes in strict bits after the scope has ended too.
std::unique_ptr<GenerationEngine> strict_engine(const models::LanguageModel& model,
                                                const models::EngineOptions& options) {
  const StrictBits strict;
  return std::make_unique<GenerationEngine>(model, options);
}

// The same by an engine, as `braid eval` and `braid serve` score prompts.
std::vector<double> of_engine(const models::LanguageModel& model, const std::vector<Text>& texts,
                              const models::EngineOptions& options) {
  const auto engine = strict_engine(model, options);
  std::deque<Told> told;
  for (const Text& text : texts)
    engine->submit(told.emplace_back().listen({.prompt = text, .max_tokens = 0, .top = 1, .score_from = 1}));
  engine->run();
  std::vector<double> logprobs;
  for (const Told& one : told)
    for (const models::TokenScore& score : one.prompt_scores) logprobs.push_back(score.logprob);
  return logprobs;
}

// Texts that continue the first tokens of `texts`, several at a time, and the log-probabilities of what is drawn.
struct Decoded {
  std::vector<Text> texts;
  std::vector<double> logprobs;
};
Decoded of_decoding(const models::LanguageModel& model, const std::vector<Text>& texts, int64_t given) {
  const auto engine = strict_engine(model, {.sequences = std::ssize(texts), .rows = 24});
  std::deque<Told> told;
  for (const Text& text : texts) {
    models::GenerationRequest request{.prompt = {text.begin(), text.begin() + given},
                                      .max_tokens = std::ssize(text) - given,
                                      .sampling = {.temperature = 1, .seed = told.size()},
                                      .logprobs = true};
    engine->submit(told.emplace_back().listen(std::move(request)));
    engine->step();  // they join one after the other
  }
  engine->run();
  Decoded decoded;
  for (size_t i = 0; i < texts.size(); ++i) {
    Text& text = decoded.texts.emplace_back(texts[i].begin(), texts[i].begin() + given);
    text.insert(text.end(), told[i].tokens.begin(), told[i].tokens.end());
    for (const models::TokenScore& score : told[i].scores) decoded.logprobs.push_back(score.logprob);
  }
  return decoded;
}

struct Difference {
  size_t tokens = 0, different = 0;
  double max = 0;
  void add(const std::vector<double>& a, const std::vector<double>& b) {
    BOOST_REQUIRE(a.size() == b.size());
    tokens += a.size();
    for (size_t i = 0; i < a.size(); ++i) {
      different += !(a[i] == b[i]);
      max = std::fmax(max, std::fabs(a[i] - b[i]));
    }
  }
};

// The tokens of texts of `length` tokens in all ways.
Difference differences(const models::LanguageModel& model, int64_t count, int64_t length, uint64_t seed) {
  std::vector<Text> texts;
  for (int64_t i = 0; i < count; ++i)
    texts.push_back(random_text(length, model.vocab_size(), seed + static_cast<uint64_t>(i)));
  const std::vector<double> want = of_training(model, texts);
  Difference difference;
  for (const models::EngineOptions& options : {models::EngineOptions{.sequences = count, .rows = count * length},
                                               {.sequences = 1, .rows = 1},
                                               {.sequences = 2, .rows = 13, .share_prefixes = false},
                                               {.sequences = count, .rows = 70}})
    difference.add(of_engine(model, texts, options), want);
  const int64_t given = 5;
  const Decoded decoded = of_decoding(model, texts, given);
  const std::vector<double> all = of_training(model, decoded.texts);
  std::vector<double> drawn;
  for (int64_t i = 0; i < count; ++i)
    drawn.insert(drawn.end(), all.begin() + i * (length - 1) + given - 1, all.begin() + (i + 1) * (length - 1));
  difference.add(decoded.logprobs, drawn);
  return difference;
}

constexpr int64_t kLength = 200;  // several segments of keys, and windows that begin inside one
models::Dcformer long_model(const std::string& preset, const Keys& keys, DType dtype) {
  Keys all = {{"block_size", "300"}, {"window_size", "100"}};
  all.insert(all.end(), keys.begin(), keys.end());
  return mixing_model(preset, all, dtype);
}

void expect_no_difference(const models::LanguageModel& model, const std::string& what, int64_t length = kLength) {
  const Difference d = differences(model, 3, length, 1);
  BOOST_TEST(d.different == 0u,
             what << ": " << d.different << " of " << d.tokens << " tokens differ, by " << d.max << " at most");
}

}  // namespace

BOOST_AUTO_TEST_CASE(training_and_serving_are_one_function) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const auto& [preset, keys] :
         {std::pair<const char*, Keys>{"dcformer-tiny", {}},
          {"dcformer-tiny", {{"n_kv_head", "2"}, {"profile.static_proj", "true"}, {"profile.name", "T1"}}},
          {"dcpythia-tiny", {}},
          {"llama-tiny", {{"n_kv_head", "2"}, {"tie_word_embeddings", "true"}, {"logit_softcap", "20"}}}})
      expect_no_difference(long_model(preset, keys, dtype), str(preset, " ", dtype));
  }
}

BOOST_AUTO_TEST_CASE(on_every_instruction_set_and_any_number_of_threads) {
  const int before = threads();
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const models::Dcformer model = long_model("dcformer-tiny", {}, dtype);
    const std::vector<Text> text = {random_text(kLength, model.vocab_size(), 9)};
    const std::vector<double> want = of_training(model, text);
    for (const char* name : {"portable", "avx2", "avx512"}) {
      if (!cpu::attention::use_variant(name)) continue;
      cpu::use_instruction_set(name);
      set_threads(name[0] == 'p' ? 3 : 1);
      BOOST_TEST(of_training(model, text) == want, str("training: ", dtype, " ", name));
      BOOST_TEST(of_engine(model, text, {.sequences = 1, .rows = 70}) == want, str("engine: ", dtype, " ", name));
    }
    cpu::attention::use_variant(""), cpu::use_instruction_set("");
  }
  set_threads(before);
}

BOOST_AUTO_TEST_CASE(with_every_variant_whose_pool_is_invariant) {
  int tried = 0;
  for (const Keys& keys : variant_keys()) {
    const models::Dcformer model = mixing_model("dcformer-tiny", keys, DType::f32);
    if (!model.make_sequence_pool(16)->invariant()) continue;
    std::string what;
    for (const auto& [key, value] : keys) what += key + "=" + value + " ";
    expect_no_difference(model, what, 90);
    ++tried;
  }
  BOOST_TEST(tried > 10);
}

BOOST_AUTO_TEST_CASE(a_packed_document_is_a_text_of_its_own) {
  const models::Dcformer model = long_model("dcformer-tiny", {}, DType::f32);
  const std::vector<Text> documents = {random_text(70, 40, 1), random_text(17, 40, 2), random_text(113, 40, 3)};
  Text ids, targets, positions;
  for (const Text& document : documents) {
    ids.insert(ids.end(), document.begin(), document.end());
    targets.insert(targets.end(), document.begin() + 1, document.end()), targets.push_back(-1);
    for (int32_t t = 0; t < std::ssize(document); ++t) positions.push_back(t);
  }
  const Shape shape = {1, std::ssize(ids)};
  const StrictBits strict;
  const TokenLosses losses;
  const Tensor loss = model.loss_sum(
      models::text_batch(from_vector(ids, shape), from_vector(targets, shape), from_vector(positions, shape)));
  BOOST_REQUIRE(requires_grad(loss));
  const std::vector<double> terms = losses.terms().to_vector<double>();
  std::vector<double> packed;
  for (size_t t = 0; t < terms.size(); ++t)
    if (targets[t] >= 0) packed.push_back(-terms[t]);
  BOOST_TEST(of_engine(model, documents, {.sequences = 3, .rows = 19}) == packed, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(models_without_such_bits_are_rejected) {
  const StrictBits strict;
  const auto rejects = [](const models::LanguageModel& model, const char* expected, const char* found) {
    BRAID_CHECK_FAILS(GenerationEngine(model, {}), ErrorKind::setting, expected, found);
  };
  rejects(small_model(DType::f64), "expected weights of f32 or bf16", "found f64");
  models::Dcformer model = small_model(DType::f32);
  model.quantize_weights();
  rejects(model, "expected weights of f32 or bf16", "found int8");
  rejects(mixing_model("gemma2-tiny", {}, DType::f32), "expected a model whose rows do not depend on their company",
          "leave strict out");
}

// By hand: minutes.
BOOST_AUTO_TEST_CASE(a_million_tokens, *boost::unit_test::disabled()) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    models::Dcformer model(models::configure("dcformer-tiny", {{"initializer_std", "0.1"}}), {5, 0});
    mix_heads(model);
    model.to(dtype);
    Difference all;
    for (uint64_t seed = 0; all.tokens < 1'000'000; seed += 4) {
      const Difference d = differences(model, 4, std::min<int64_t>(512, model.max_sequence_length()), seed);
      all.tokens += d.tokens, all.different += d.different, all.max = std::fmax(all.max, d.max);
    }
    BOOST_TEST_MESSAGE(str(dtype) << ": " << all.different << " of " << all.tokens << " tokens differ, by " << all.max
                                  << " at most");
    BOOST_TEST(all.different == 0u);
  }
}

BOOST_AUTO_TEST_SUITE_END()
