// Prompts of uneven lengths in one batch get the tokens that each gets alone.
#include "braid/models/inference/batch.h"

#include <boost/test/unit_test.hpp>

#include "braid/autograd/ops.h"
#include "braid/models/families/dcformer/model.h"
#include "tests/models/made_models.h"
#include "tests/support/compare.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(generate_batches)

namespace {

const Keys kShort = {{"window_size", "6"}, {"block_size", "24"}};

const std::vector<std::vector<int32_t>> kPrompts = {{3, 1, 4, 1, 5, 9, 2, 6},      {7},    {5, 3, 5},
                                                    {8, 9, 7, 9, 3, 2, 3, 8},      {4, 6}, std::vector<int32_t>(20, 2),
                                                    {2, 6, 4, 3, 3, 8, 3, 2, 7, 9}};

void check_rows(const models::LanguageModel& model, const models::SamplingOptions& options, int64_t max_tokens) {
  std::vector<models::Generated> alone;
  for (size_t i = 0; i < kPrompts.size(); ++i) {
    models::SamplingOptions own = options;
    own.seed += i;
    alone.push_back(models::generate(model, kPrompts[i], max_tokens, own, {11, 30}));
  }
  for (const int64_t rows : {1, 2, 3, 7}) {
    const models::GeneratedBatch batch = models::generate_batch(model, kPrompts, rows, max_tokens, options, {11, 30});
    BOOST_REQUIRE(batch.texts.size() == alone.size());
    for (size_t i = 0; i < alone.size(); ++i) {
      BOOST_TEST(batch.texts[i].tokens == alone[i].tokens, "prompt " << i << ", rows " << rows);
      BOOST_TEST((batch.texts[i].reason == alone[i].reason), "prompt " << i << ", rows " << rows);
    }
    BOOST_TEST(batch.prompt_tokens <= 52);  // computed ones: some begin as others do
    BOOST_TEST(batch.prompt_tokens > 45);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_prompt_gets_the_same_tokens_in_any_batch) {
  for (const char* preset : {"dcformer-tiny", "transformer-tiny"}) {
    const models::Dcformer model = mixing_model(preset, kShort);
    for (const int64_t max_tokens : {1, 9, 40}) {
      check_rows(model, {.temperature = 0}, max_tokens);
      check_rows(model, {.temperature = 1.5, .repetition_penalty = 1.2, .seed = 4}, max_tokens);
    }
  }
  check_rows(mixing_model("dcformer-tiny", kShort, DType::f32), {.temperature = 1, .seed = 9}, 12);
}

BOOST_AUTO_TEST_CASE(stops_and_bad_prompts) {
  const models::Dcformer model = mixing_model("dcformer-tiny", kShort);
  std::vector<int> calls(kPrompts.size(), 0);
  const models::GeneratedBatch batch =
      models::generate_batch(model, kPrompts, 4, 9, {}, {}, [&](size_t i, int32_t) { return ++calls[i] < 3; });
  for (const models::Generated& text : batch.texts) BOOST_TEST((text.reason == models::StopReason::caller));
  for (const int n : calls) BOOST_TEST(n == 3);
  const std::vector<std::vector<int32_t>> bad = {{1}, {}};
  BRAID_CHECK_FAILS(models::generate_batch(model, bad, 2, 3, {}), ErrorKind::setting, "the prompt is empty");
  BOOST_TEST(models::generate_batch(model, {}, 2, 3, {}).texts.empty());
}

BOOST_AUTO_TEST_SUITE_END()
