// Requests in any mixture get what each gets alone: random workloads, blocks that run out, prefixes that are shared,
// cancellation, threads.
#include "braid/models/inference/engine.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <deque>
#include <map>
#include <thread>

#include "tests/models/inference/hash_model.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(engine)

using models::GenerationEngine;
using models::GenerationRequest;
using models::StopReason;

namespace {

const HashModel kModel;

class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  int64_t below(int64_t n) { return random_bits(rolled_++, {seed_, 3}) % n; }

 private:
  uint64_t seed_, rolled_ = 0;
};

std::vector<int32_t> random_text(Dice& dice, int64_t length) {
  std::vector<int32_t> text;
  for (int64_t i = 0; i < length; ++i) text.push_back(static_cast<int32_t>(dice.below(HashModel::kNan)));
  return text;
}

// Some begin as others do.
GenerationRequest random_request(Dice& dice, const std::vector<std::vector<int32_t>>& beginnings) {
  GenerationRequest r;
  if (dice.below(3) > 0) r.prompt = beginnings[static_cast<size_t>(dice.below(std::ssize(beginnings)))];
  const std::vector<int32_t> own = random_text(dice, 1 + dice.below(20));
  r.prompt.insert(r.prompt.end(), own.begin(), own.end());
  r.max_tokens = dice.below(5) == 0 ? dice.below(2) : 1 + dice.below(40);
  r.sampling = {.temperature = dice.below(2) ? 0.0 : 0.8,
                .top_k = dice.below(20),
                .repetition_penalty = dice.below(2) ? 1.0 : 1.3,
                .seed = static_cast<uint64_t>(dice.below(1000))};
  r.ends = {static_cast<int32_t>(dice.below(48)), static_cast<int32_t>(dice.below(48))};
  r.logprobs = dice.below(2) == 0;
  r.top = dice.below(4);
  if (dice.below(3) == 0) r.score_from = 1 + dice.below(std::ssize(r.prompt) + 1);
  return r;
}

std::vector<std::vector<int32_t>> random_beginnings(Dice& dice) {
  std::vector<std::vector<int32_t>> all;
  for (int i = 0; i < 3; ++i) all.push_back(random_text(dice, 4 + dice.below(16)));
  return all;
}

void expect_no_block_in_use(GenerationEngine& engine) {
  engine.drop_prefixes();
  BOOST_TEST(!engine.step());
  const models::EngineLoad load = engine.load();
  BOOST_TEST(load.free_blocks == load.blocks);
  BOOST_TEST(load.running + load.waiting + load.kept == 0);
}

}  // namespace

BOOST_AUTO_TEST_CASE(requests_in_any_mixture_get_what_each_gets_alone) {
  int64_t interruptions = 0, shared = 0;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    Dice dice(seed);
    const std::vector<std::vector<int32_t>> beginnings = random_beginnings(dice);
    const models::EngineOptions options{
        .sequences = 1 + dice.below(6), .rows = 1 + dice.below(40), .share_prefixes = dice.below(4) > 0};
    SharingPool::Log log;
    std::unique_ptr<models::SequencePool> pool;
    if (seed % 3 == 0)
      pool = models::make_separate_pool(kModel, 64 + dice.below(100));
    else
      pool = std::make_unique<SharingPool>(16 + dice.below(20), &log);  // the longest sequence needs 16
    GenerationEngine engine(kModel, std::move(pool), options);
    std::vector<GenerationRequest> requests;
    std::deque<Told> told;
    for (int64_t left = 30; left > 0 || engine.load().waiting + engine.load().running > 0;) {
      for (int64_t more = dice.below(4); more > 0 && left > 0; --more, --left) {
        requests.push_back(random_request(dice, beginnings));
        BOOST_REQUIRE(engine.submit(told.emplace_back().listen(requests.back())));
      }
      engine.step();
    }
    int64_t new_tokens = 0;
    for (size_t i = 0; i < told.size(); ++i) {
      BOOST_TEST(equal(told[i], alone(kModel, requests[i])), "request " << i << " of workload " << seed);
      new_tokens += std::ssize(told[i].tokens);
    }
    const models::EngineLoad load = engine.load();
    BOOST_TEST(load.finished == 30);
    BOOST_TEST(load.new_tokens == new_tokens);
    BOOST_TEST(log.max_rows <= std::max(options.rows, options.sequences));
    interruptions += load.interruptions, shared += load.shared_tokens;
    expect_no_block_in_use(engine);
  }
  BOOST_TEST(interruptions > 20);  // the workloads are such that blocks run out
  BOOST_TEST(shared > 1000);
}

BOOST_AUTO_TEST_CASE(a_request_that_gave_its_blocks_away_goes_on_as_if_nothing_had_been) {
  SharingPool::Log log;
  GenerationEngine engine(kModel, std::make_unique<SharingPool>(16, &log), {.sequences = 4, .share_prefixes = false});
  std::deque<Told> told;
  std::vector<GenerationRequest> requests;
  Dice dice(5);
  for (int i = 0; i < 4; ++i) {
    requests.push_back({.prompt = random_text(dice, 6), .max_tokens = 45, .logprobs = true, .score_from = 2});
    engine.submit(told.emplace_back().listen(requests.back()));
  }
  engine.run();
  BOOST_TEST(engine.load().interruptions > 0);
  // Tokens that are computed again keep their kind: a piece is of the prompt, or of new tokens.
  BOOST_TEST(log.generated > 4 * 44);
  BOOST_TEST((log.rows - log.generated) % 6 == 0);
  for (size_t i = 0; i < told.size(); ++i) {
    BOOST_TEST(equal(told[i], alone(kModel, requests[i])), i);
    BOOST_TEST(told[i].last.steps == 44);
    BOOST_TEST(told[i].prompt_scores.size() == 4u);  // told once
  }
  expect_no_block_in_use(engine);
}

BOOST_AUTO_TEST_CASE(cancelled_requests_leave_the_others_alone) {
  for (uint64_t seed = 100; seed < 112; ++seed) {
    Dice dice(seed);
    const std::vector<std::vector<int32_t>> beginnings = random_beginnings(dice);
    GenerationEngine engine(kModel, std::make_unique<SharingPool>(24), {.sequences = 4, .rows = 12});
    std::deque<Told> told;
    std::vector<GenerationRequest> requests;
    std::vector<uint64_t> ids;
    std::map<size_t, bool> cancelled;
    for (int i = 0; i < 20; ++i) {
      requests.push_back(random_request(dice, beginnings));
      ids.push_back(engine.submit(told.emplace_back().listen(requests.back())).value());
    }
    do {
      if (dice.below(3) > 0) continue;
      const auto i = static_cast<size_t>(dice.below(20));
      cancelled[i] = cancelled[i] || told[i].finished == 0;
      engine.cancel(ids[i]);
      engine.cancel(ids[i]);  // twice, and ids that never were
      engine.cancel(77777);
    } while (engine.step());
    for (size_t i = 0; i < told.size(); ++i) {
      BOOST_TEST(told[i].finished == 1);
      const Told want = alone(kModel, requests[i]);
      if (!cancelled[i]) {
        BOOST_TEST(equal(told[i], want), "request " << i << " of workload " << seed);
        continue;
      }
      BOOST_TEST((told[i].last.reason == StopReason::cancelled));
      BOOST_TEST(std::ranges::equal(told[i].tokens, std::span(want.tokens).first(told[i].tokens.size())));
    }
    BOOST_TEST(engine.load().cancelled == std::ranges::count_if(cancelled, [](const auto& c) { return c.second; }));
    expect_no_block_in_use(engine);
  }
}

BOOST_AUTO_TEST_CASE(equal_prompts_are_computed_once) {
  SharingPool::Log log;
  GenerationEngine engine(kModel, std::make_unique<SharingPool>(200, &log), {.sequences = 8, .rows = 100});
  Dice dice(9);
  const std::vector<int32_t> prompt = random_text(dice, 41);
  std::deque<Told> told;
  for (uint64_t i = 0; i < 8; ++i)
    engine.submit(told.emplace_back().listen({.prompt = prompt, .max_tokens = 5, .sampling = {.seed = i}}));
  engine.run();
  BOOST_TEST(log.rows == 41 + 7 * 1 + 8 * 4);  // the last prompt token is computed for each
  BOOST_TEST(log.generated == 8 * 4);
  for (uint64_t i = 0; i < 8; ++i) {
    BOOST_TEST(told[i].last.shared_tokens == (i == 0 ? 0 : 40));
    BOOST_TEST(told[i].tokens == alone(kModel, {.prompt = prompt, .max_tokens = 5, .sampling = {.seed = i}}).tokens);
  }
  // Scores need rows of their own: from the token before the first one that is scored.
  Told scored;
  engine.submit(scored.listen({.prompt = prompt, .max_tokens = 0, .score_from = 21}));
  engine.run();
  BOOST_TEST(scored.last.shared_tokens == 20);
  BOOST_TEST(scored.prompt_scores.size() == 20u);
}

BOOST_AUTO_TEST_CASE(kept_prefixes_make_room_for_requests) {
  GenerationEngine engine(kModel, std::make_unique<SharingPool>(16), {.sequences = 2});
  Dice dice(11);
  const std::vector<int32_t> first = random_text(dice, 20), other = random_text(dice, 60);
  const auto run = [&](const std::vector<int32_t>& prompt) {
    Told told;
    engine.submit(told.listen({.prompt = prompt, .max_tokens = 2}));
    engine.run();
    BOOST_TEST(equal(told, alone(kModel, {.prompt = prompt, .max_tokens = 2})));
    return told.last.shared_tokens;
  };
  BOOST_TEST(run(first) == 0);
  BOOST_TEST(run(first) == 16);  // whole blocks
  BOOST_TEST(engine.load().kept > 0);
  BOOST_TEST(run(other) == 0);  // needs all blocks
  BOOST_TEST(run(first) == 0);
  Told growing;  // takes the blocks of what is kept, not those of a request
  engine.submit(growing.listen({.prompt = {1, 2}, .max_tokens = 60}));
  engine.run();
  BOOST_TEST(growing.tokens.size() == 60u);
  BOOST_TEST(engine.load().interruptions == 0);
}

BOOST_AUTO_TEST_CASE(a_longer_text_takes_a_kept_sequence_over) {
  GenerationEngine engine(kModel, {.sequences = 1});  // a cache that cannot be cut
  std::vector<int32_t> text = {1, 2, 3};
  for (int turn = 0; turn < 4; ++turn) {
    Told told;
    engine.submit(told.listen({.prompt = text, .max_tokens = 4}));
    engine.run();
    BOOST_TEST(told.last.shared_tokens == (turn == 0 ? 0 : std::ssize(text) - 3));  // the last token had no place yet
    text.insert(text.end(), told.tokens.begin(), told.tokens.end());
    text.insert(text.end(), {5, 6});
  }
}

BOOST_AUTO_TEST_CASE(the_queue_has_a_limit) {
  GenerationEngine engine(kModel, {.sequences = 1, .queue = 2});
  const auto submit = [&] { return engine.submit({.prompt = {1}, .max_tokens = 3}); };
  BOOST_TEST(submit().value() == 1u);
  BOOST_TEST(submit().value() == 2u);
  BOOST_TEST(!submit());
  BOOST_TEST(engine.load().waiting == 2);
  BOOST_TEST(engine.step());
  BOOST_TEST(engine.load().running == 1);
  BOOST_TEST(engine.load().waiting == 1);
  BOOST_TEST(submit().value() == 3u);
  BOOST_TEST(!submit());
  engine.cancel(3);
  engine.step();
  BOOST_TEST(submit().has_value());
  engine.run();
  BOOST_TEST(engine.load().finished == 3);
}

BOOST_AUTO_TEST_CASE(decoding_goes_on_while_a_long_prompt_is_read) {
  GenerationEngine engine(kModel, {.sequences = 2, .rows = 5});
  Told decoding, reading;
  engine.submit(decoding.listen({.prompt = {1}, .max_tokens = 30}));
  engine.step();
  Dice dice(3);
  engine.submit(reading.listen({.prompt = random_text(dice, 40), .max_tokens = 1}));
  for (size_t pass = 2; pass <= 10; ++pass) {  // 4 rows of each pass are for the prompt
    engine.step();
    BOOST_TEST(decoding.tokens.size() == pass);
    BOOST_TEST(reading.updates == 0);
  }
  engine.step();
  BOOST_TEST(reading.finished == 1);
}

BOOST_AUTO_TEST_CASE(threads_submit_and_cancel_while_passes_run) {
  GenerationEngine engine(kModel, std::make_unique<SharingPool>(40), {.sequences = 4, .rows = 16, .queue = 50});
  constexpr int kThreads = 4, kEach = 40;
  std::atomic<int> ended = 0, accepted = 0, mixed_up = 0;
  std::atomic<int> working = kThreads;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Dice dice(static_cast<uint64_t>(t) + 50);
      for (int i = 0; i < kEach; ++i) {
        GenerationRequest request{.prompt = random_text(dice, 1 + dice.below(12)), .max_tokens = dice.below(12)};
        const Told want = alone(kModel, request);
        auto got = std::make_shared<std::vector<int32_t>>();
        request.on_update = [&, got, tokens = want.tokens](const models::Update& u) {
          got->insert(got->end(), u.tokens.begin(), u.tokens.end());
          if (!u.finished) return true;
          ++ended;
          const bool whole = u.reason != StopReason::cancelled;
          mixed_up += whole ? *got != tokens : !std::ranges::equal(*got, std::span(tokens).first(got->size()));
          return true;
        };
        const std::optional<uint64_t> id = engine.submit(request);
        accepted += id.has_value();
        if (id && dice.below(3) == 0) engine.cancel(*id);
        static_cast<void>(engine.load());
      }
      --working;
    });
  }
  while (working > 0 || ended < accepted) {
    engine.wait_for_work(std::chrono::milliseconds(1));
    engine.step();
  }
  for (std::thread& thread : threads) thread.join();
  engine.run();
  BOOST_TEST(ended == accepted);
  BOOST_TEST(mixed_up == 0);
  expect_no_block_in_use(engine);
  BOOST_TEST(!engine.wait_for_work(std::chrono::milliseconds(1)));
}

BOOST_AUTO_TEST_SUITE_END()
