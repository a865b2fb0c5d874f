#include "braid/distributed/job/background_work.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>

#include "braid/distributed/comm/thread_transport.h"
#include "braid/distributed/job/run_on_all_ranks.h"
#include "tests/distributed/support.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;
using dist::BackgroundWork, dist::Communicator;

BOOST_AUTO_TEST_SUITE(background_work)

namespace {
void sleep_ms(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }
}  // namespace

// The ranks' own collectives go on between those of the work, whose parts take another time on every rank.
BOOST_AUTO_TEST_CASE(its_collectives_mix_with_none_of_the_training) {
  for (const int ranks : {1, 2, 3}) {
    dist::run_thread_ranks(ranks, [&](const Communicator& world) {
      BackgroundWork work;
      for (int round = 0; round < 3; ++round) {
        std::vector<std::string> texts;
        int64_t sum = 0;
        work.start(world, [&](const Communicator& own) {
          expect(own.rank() == world.rank() && own.size() == ranks, "another group");
          for (int i = 0; i < 5; ++i) {
            sleep_ms((world.rank() * 7 + i * 3) % 5);
            sum += own.sum(int64_t{i});
            texts = own.gather_text(std::string(static_cast<size_t>(own.rank()), 'x'));
            dist::run_on_all_ranks(own, [] {});
          }
        });
        int64_t steps = 0;
        for (bool ended = false; !ended; ++steps) {
          expect(world.sum(steps) == steps * ranks, "a sum of the training");
          ended = round < 2 && work.proceed();
          if (round == 2) work.finish(), ended = true;
          if (!ended) sleep_ms(1);
        }
        expect(sum == 10 * ranks, "a sum of the work");
        expect(std::ssize(texts) == ranks && std::ssize(texts.back()) == ranks - 1, "the texts of the work");
        expect(!work.active(), "still active");
      }
    });
  }
}

BOOST_AUTO_TEST_CASE(an_error_is_that_of_all_ranks) {
  for (const int ranks : {1, 3}) {
    dist::run_thread_ranks(ranks, [&](const Communicator& world) {
      BackgroundWork work;
      work.start(world, [&](const Communicator& own) {
        dist::run_on_all_ranks(own, [&] {
          if (own.rank() == own.size() - 1) fail(ErrorKind::output, "the disk is full");
        });
      });
      expect_error([&] { work.finish(); }, ErrorKind::output,
                   ranks == 1 ? "the disk is full" : "rank 2: the disk is full");
      expect(!work.active(), "still active");
      expect(world.sum(int64_t{1}) == ranks, "the ranks are not together");
    });
  }
}

BOOST_AUTO_TEST_CASE(an_error_of_one_rank_ends_that_rank) {
  const auto job = [] {
    dist::run_thread_ranks(2, [](const Communicator& world) {
      BackgroundWork work;
      work.start(world, [](const Communicator& own) {
        if (own.rank() == 1) fail(ErrorKind::misuse, "no memory for it");
        own.barrier();
      });
      work.finish();
    });
  };
  BOOST_TEST(throws_with(job, "no memory for it"));
}

// A rank whose training ends with an error: the others may never come to the transfer that its work waits for.
BOOST_AUTO_TEST_CASE(its_end_does_not_wait_for_other_ranks) {
  std::atomic<int> given_up = 0, done = 0;
  dist::run_thread_ranks(2, [&](const Communicator& world) {
    BackgroundWork work;
    work.start(world, [&](const Communicator& own) {
      try {
        own.barrier();
      } catch (const Error& e) {
        given_up += e.kind() == ErrorKind::process;
        throw;
      }
    });
  });
  BOOST_TEST(given_up == 2);
  {
    BackgroundWork alone;  // of one process: it comes to its end
    alone.start({}, [&](const Communicator&) {
      sleep_ms(20);
      ++done;
    });
  }
  BOOST_TEST(done == 1);
}

BOOST_AUTO_TEST_SUITE_END()
