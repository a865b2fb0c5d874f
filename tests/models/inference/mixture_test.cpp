// Requests to a Dcformer get the same tokens and the same bits of every log-probability alone and in any mixture:
// beside others, with prompts in pieces, with shared prefixes, and after they gave their blocks back.
#include <boost/test/unit_test.hpp>
#include <deque>

#include "braid/models/inference/engine.h"
#include "tests/models/inference/hash_model.h"
#include "tests/models/made_models.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(mixture)

using models::GenerationEngine;
using models::GenerationRequest;

namespace {

models::Dcformer make_model(const std::string& preset, DType dtype) {
  models::DcformerConfig config = small_config(preset);
  config.block_size = 64;  // texts grow by several blocks
  models::Dcformer model(config, {1, 0});
  mix_heads(model);
  model.to(dtype);
  return model;
}

std::vector<GenerationRequest> requests() {
  std::vector<GenerationRequest> all;
  for (uint64_t i = 0; i < 12; ++i) {
    GenerationRequest r;
    for (uint64_t t = 0; t < 1 + i * 5 % 17; ++t)
      r.prompt.push_back(static_cast<int32_t>(random_bits(t, {i % 3, 5}) % 200));  // every third begins alike
    r.max_tokens = i == 5 ? 1 : 30 + static_cast<int64_t>(i * 7 % 16);
    r.sampling = {.temperature = i % 2 ? 0.9 : 0.0, .seed = i};
    r.logprobs = true;
    r.top = 2;
    if (i % 4 == 0) r.score_from = 1;
    all.push_back(r);
  }
  return all;
}

Told alone_on(const models::LanguageModel& model, GenerationRequest request) {
  Told told;
  GenerationEngine engine(model, {.sequences = 1, .rows = 64, .share_prefixes = false});
  engine.submit(told.listen(std::move(request)));
  engine.run();
  return told;
}

}  // namespace

BOOST_AUTO_TEST_CASE(bits_do_not_depend_on_the_others) {
  for (const auto& [preset, dtype] : {std::pair{"dcformer-tiny", DType::f32},
                                      {"dcformer-tiny", DType::bf16},
                                      {"dcpythia-tiny", DType::f32},
                                      {"transformer-tiny", DType::f32}}) {
    const models::Dcformer model = make_model(preset, dtype);
    std::vector<Told> want;
    for (const GenerationRequest& r : requests()) want.push_back(alone_on(model, r));
    int64_t interruptions = 0, shared = 0;
    for (const models::EngineOptions& options :
         {models::EngineOptions{.sequences = 12},
          {.sequences = 3, .rows = 4},
          {.sequences = 12, .positions = 64, .rows = 13},
          {.sequences = 5, .positions = 80, .rows = 7, .share_prefixes = false}}) {
      GenerationEngine engine(model, options);
      BOOST_TEST(engine.invariant());
      std::deque<Told> told;
      for (const GenerationRequest& r : requests()) {
        engine.submit(told.emplace_back().listen(r));
        if (told.size() % 3 == 0) engine.step();
      }
      engine.run();
      for (size_t i = 0; i < told.size(); ++i)
        BOOST_TEST(equal(told[i], want[i]), preset << ", request " << i << ", rows " << options.rows);
      interruptions += engine.load().interruptions, shared += engine.load().shared_tokens;
      engine.drop_prefixes();
      engine.step();
      BOOST_TEST(engine.load().free_blocks == engine.load().blocks);
    }
    BOOST_TEST(interruptions > 0);
    BOOST_TEST(shared > 0);
  }
}

// A text that grows needs a block of every layer. Where two texts would take the last ones from each other the second
// one waits, rather than being computed twice.
BOOST_AUTO_TEST_CASE(a_request_waits_where_the_others_could_not_grow) {
  const models::Dcformer model = make_model("transformer-tiny", DType::f32);
  GenerationRequest request;
  for (int32_t t = 0; t < 16; ++t) request.prompt.push_back(t);  // as long as a block
  request.max_tokens = 10;                                       // of which most are in a second one
  GenerationEngine engine(model, {.sequences = 2, .positions = 48, .share_prefixes = false});
  std::deque<Told> told;
  for (int i = 0; i < 2; ++i) engine.submit(told.emplace_back().listen(request));
  engine.step();
  BOOST_TEST(engine.load().blocks == 6);
  BOOST_TEST(engine.load().running == 1);
  engine.run();
  BOOST_TEST(engine.load().interruptions == 0);
  for (const Told& one : told) BOOST_TEST(one.tokens.size() == 10U);
}

BOOST_AUTO_TEST_SUITE_END()
