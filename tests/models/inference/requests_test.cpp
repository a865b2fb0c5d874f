// How requests end, and what one that fails leaves behind.
#include <boost/test/unit_test.hpp>

#include "braid/models/inference/generate.h"
#include "tests/models/inference/hash_model.h"
#include "tests/support/throws.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(generation_requests)

using models::GenerationEngine;
using models::GenerationRequest;
using models::StopReason;

namespace {
const HashModel kModel;
}

BOOST_AUTO_TEST_CASE(texts_end_where_they_should) {
  const Told length = alone(kModel, {.prompt = {1, 2}, .max_tokens = 7});
  BOOST_TEST(length.tokens.size() == 7u);
  BOOST_TEST((length.last.reason == StopReason::length));
  BOOST_TEST(length.updates == 7);
  BOOST_TEST(length.last.steps == 6);
  BOOST_TEST(length.last.prompt_tokens == 2);
  const Told full = alone(kModel, {.prompt = {1, 2}, .max_tokens = INT64_MAX});
  BOOST_TEST(full.tokens.size() == 63u);  // the last one has no place
  BOOST_TEST((full.last.reason == StopReason::context_full));
  BOOST_TEST(std::ranges::equal(length.tokens, std::span(full.tokens).first(7)));
  const int32_t third = length.tokens[2];
  const Told ended = alone(kModel, {.prompt = {1, 2}, .max_tokens = 7, .ends = {third}});
  BOOST_TEST((ended.last.reason == StopReason::end_of_text));
  BOOST_TEST(std::ranges::count(ended.tokens, third) == 0);
  const Told none = alone(kModel, {.prompt = {1, 2}, .max_tokens = 0});
  BOOST_TEST(none.tokens.empty());
  BOOST_TEST(none.updates == 1);
  BOOST_TEST((none.last.reason == StopReason::length));
  const Told longest = alone(kModel, {.prompt = std::vector<int32_t>(64, 3), .max_tokens = 5});
  BOOST_TEST(longest.tokens.size() == 1u);
  BOOST_TEST((longest.last.reason == StopReason::context_full));
}

BOOST_AUTO_TEST_CASE(a_cache_smaller_than_the_model_ends_texts) {
  GenerationEngine engine(kModel, std::make_unique<SharingPool>(5), {});
  Told told;
  engine.submit(told.listen({.prompt = {1, 2}, .max_tokens = 60}));
  engine.run();
  BOOST_TEST((told.last.reason == StopReason::context_full));
  BOOST_TEST(told.tokens.size() == 19u);
  BRAID_CHECK_FAILS(engine.submit({.prompt = std::vector<int32_t>(21, 1)}), ErrorKind::setting,
                    "the prompt has 21 tokens, the cache of this engine has room for 20");
}

BOOST_AUTO_TEST_CASE(the_caller_ends_a_text) {
  Told told;
  GenerationRequest request{.prompt = {4}, .max_tokens = 9};
  request.on_update = [&](const models::Update&) { return told.tokens.size() < 3; };
  GenerationEngine engine(kModel);
  engine.submit(told.listen(request));
  engine.run();
  BOOST_TEST(told.tokens.size() == 3u);
  BOOST_TEST((told.last.reason == StopReason::caller));
  BOOST_TEST(told.finished == 1);
  BOOST_TEST(told.updates == 4);
  BOOST_TEST(engine.load().finished == 1);
}

BOOST_AUTO_TEST_CASE(not_a_number_fails_one_request_alone) {
  for (const bool scored : {false, true}) {
    GenerationEngine engine(kModel, {.sequences = 3});
    Told bad, good;
    GenerationRequest request{.prompt = {1, HashModel::kNan, 2, HashModel::kNan}, .max_tokens = 6};
    if (scored) request = {.prompt = {1, HashModel::kNan, 2}, .max_tokens = 0, .score_from = 1};
    engine.submit(bad.listen(request));
    engine.submit(good.listen({.prompt = {5, 6}, .max_tokens = 6}));
    engine.run();
    BOOST_TEST((bad.last.reason == StopReason::failed));
    BOOST_TEST(bad.finished == 1);
    BOOST_TEST(bad.tokens.empty());
    BOOST_TEST(message_of(bad.last.error).find(scored ? "for position 2" : "for position 4") != std::string::npos,
               message_of(bad.last.error));
    BOOST_TEST(equal(good, alone(kModel, {.prompt = {5, 6}, .max_tokens = 6})));
    BOOST_TEST(engine.load().failed == 1);
    BOOST_TEST(engine.load().kept == 1);  // of the good one
  }
  BRAID_CHECK_FAILS(models::generate(kModel, std::vector<int32_t>{1, HashModel::kNan}, 3, {}), ErrorKind::numerical,
                    "no token can be drawn for position 2");
}

BOOST_AUTO_TEST_CASE(a_pass_that_fails_takes_those_in_it_along) {
  GenerationEngine engine(kModel, {.sequences = 2, .rows = 20});
  Told first, bad, later;
  engine.submit(first.listen({.prompt = {1, 2, 3}, .max_tokens = 4}));
  engine.submit(bad.listen({.prompt = {1, HashModel::kThrow}, .max_tokens = 4}));
  engine.submit(later.listen({.prompt = {1, 2, 3}, .max_tokens = 4}));
  engine.run();
  for (const Told* told : {&first, &bad}) {
    BOOST_TEST((told->last.reason == StopReason::failed));
    BOOST_TEST(message_of(told->last.error) == "the pass failed");
  }
  BOOST_TEST(equal(later, alone(kModel, {.prompt = {1, 2, 3}, .max_tokens = 4})));
  engine.drop_prefixes();
  engine.step();
  BOOST_TEST(engine.load().free_blocks == engine.load().blocks);
}

BOOST_AUTO_TEST_CASE(an_exception_of_the_caller_ends_its_request) {
  GenerationEngine engine(kModel);
  Told bad, good;
  GenerationRequest request{.prompt = {4}, .max_tokens = 9};
  request.on_update = [&](const models::Update&) -> bool {
    if (bad.tokens.size() == 2) throw std::runtime_error("the caller is gone");  // also at the last update
    return true;
  };
  engine.submit(bad.listen(request));
  engine.submit(good.listen({.prompt = {5, 6}, .max_tokens = 6}));
  engine.run();
  BOOST_TEST((bad.last.reason == StopReason::failed));
  BOOST_TEST(message_of(bad.last.error) == "the caller is gone");
  BOOST_TEST(bad.tokens.size() == 2u);
  BOOST_TEST(good.tokens.size() == 6u);
}

BOOST_AUTO_TEST_CASE(an_update_may_submit_and_cancel) {
  GenerationEngine engine(kModel, {.sequences = 1});
  Told first, second, third;
  uint64_t doomed = 0;
  GenerationRequest request{.prompt = {4}, .max_tokens = 2};
  request.on_update = [&](const models::Update& u) {
    if (!u.finished) doomed = engine.submit(third.listen({.prompt = {8}, .max_tokens = 5})).value();
    if (u.finished) engine.cancel(doomed), engine.submit(second.listen({.prompt = {7}, .max_tokens = 3}));
    return true;
  };
  engine.submit(first.listen(request));
  engine.run();
  BOOST_TEST(second.tokens.size() == 3u);
  BOOST_TEST((third.last.reason == StopReason::cancelled));
  BOOST_TEST(third.updates == 1);
}

BOOST_AUTO_TEST_CASE(bad_options_and_requests_are_named) {
  BRAID_CHECK_FAILS(GenerationEngine(kModel, {.sequences = 0}), ErrorKind::setting, "engine option sequences",
                    "found 0");
  BRAID_CHECK_FAILS(GenerationEngine(kModel, {.rows = 0}), ErrorKind::setting, "engine option rows");
  BRAID_CHECK_FAILS(GenerationEngine(kModel, {.positions = -1}), ErrorKind::setting, "engine option positions");
  BRAID_CHECK_FAILS(GenerationEngine(kModel, {.queue = -1}), ErrorKind::setting, "engine option queue");
  GenerationEngine engine(kModel);
  BRAID_CHECK_FAILS(engine.submit({}), ErrorKind::setting, "the prompt is empty");
  BRAID_CHECK_FAILS(engine.submit({.prompt = {50}}), ErrorKind::input, "expected 0 to 49, found 50");
  BRAID_CHECK_FAILS(engine.submit({.prompt = std::vector<int32_t>(65, 1)}), ErrorKind::setting,
                    "longest sequence is 64");
  BRAID_CHECK_FAILS(engine.submit({.prompt = {1}, .max_tokens = -1}), ErrorKind::setting, "max_tokens", "found -1");
  BRAID_CHECK_FAILS(engine.submit({.prompt = {1}, .top = 51}), ErrorKind::setting, "top", "0 to 50");
  BRAID_CHECK_FAILS(engine.submit({.prompt = {1}, .sampling = {.top_p = 2}}), ErrorKind::setting, "top-p");
  BOOST_TEST(!engine.step());
  BOOST_TEST(engine.load().waiting == 0);
}

BOOST_AUTO_TEST_SUITE_END()
