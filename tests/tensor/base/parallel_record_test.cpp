#include "braid/tensor/base/parallel_record.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <string_view>
#include <thread>

#include "braid/tensor/error.h"

using namespace braid;

BOOST_AUTO_TEST_SUITE(parallel_record)

BOOST_AUTO_TEST_CASE(loops_are_cut_as_for_so_many_threads_and_run_in_order) {
  const int before = threads();
  detail::RecordParallelLoops recording(37);
  BOOST_TEST(threads() == 37);
  int elsewhere = 0;
  std::thread([&] { elsewhere = threads(); }).join();
  BOOST_TEST(elsewhere == before);

  std::vector<int64_t> begins;  // written by one thread
  const auto body = [&](int64_t begin, int64_t) { begins.push_back(begin); };
  parallel_for(10, 10, body);  // one piece
  const int line = __LINE__ + 1;
  parallel_for(1000, 100, body);
  parallel_for(10000, 1, body);  // too many pieces for 37 threads
  parallel_tasks(5, 3, [&](int64_t task, int64_t worker) {
    begins.push_back(task + worker);
    parallel_for(100, 1, [](int64_t, int64_t) {});  // inside of a piece
  });
  parallel_tasks(5, 1, [&](int64_t, int64_t) {});  // of one worker
  const detail::ParallelRecord record = recording.take();
  BOOST_REQUIRE(std::ssize(record.loops) == 3);
  BOOST_TEST(std::string_view(record.loops[0].where.file).ends_with("parallel_record_test.cpp"));
  BOOST_TEST(record.loops[0].where.line == line);
  BOOST_TEST(!record.loops[0].tasks);
  BOOST_TEST(std::ssize(record.loops[0].seconds) == 10);
  BOOST_TEST(std::ssize(record.loops[1].seconds) == (10000 + 16) / 17);  // 16 pieces a thread: 592, of 17
  BOOST_TEST(record.loops[2].tasks);
  BOOST_TEST(std::ssize(record.loops[2].seconds) == 5);
  std::vector<int64_t> expected{0};
  for (int64_t i = 0; i < 1000; i += 100) expected.push_back(i);
  for (int64_t i = 0; i < 10000; i += 17) expected.push_back(i);
  for (int64_t i = 0; i < 5; ++i) expected.push_back(i);
  BOOST_TEST(begins == expected, boost::test_tools::per_element());
  BOOST_TEST(recording.take().loops.empty());
}

BOOST_AUTO_TEST_CASE(time_goes_to_the_piece_that_took_it) {
  using namespace std::chrono_literals;
  detail::RecordParallelLoops recording(2);
  std::this_thread::sleep_for(5ms);
  parallel_for(2, 1, [](int64_t begin, int64_t) { std::this_thread::sleep_for(begin == 0 ? 1ms : 10ms); });
  std::this_thread::sleep_for(5ms);
  const detail::ParallelRecord record = recording.take();
  BOOST_REQUIRE(std::ssize(record.loops) == 1);
  const detail::ParallelLoop& loop = record.loops[0];
  BOOST_REQUIRE(std::ssize(loop.seconds) == 2);
  BOOST_TEST(loop.before >= 5e-3);  // a sleep may be longer, and no shorter
  BOOST_TEST(loop.seconds[0] >= 1e-3);
  BOOST_TEST(loop.seconds[1] >= 10e-3);
  BOOST_TEST(record.after >= 5e-3);
}

BOOST_AUTO_TEST_CASE(one_at_a_time_and_the_pool_again_afterwards) {
  const int before = threads();
  {
    const detail::RecordParallelLoops recording(3);
    BOOST_CHECK_EXCEPTION(detail::RecordParallelLoops(2), Error, [](const Error& e) {
      return std::string_view(e.what()).find("once at a time") != std::string_view::npos;
    });
    BOOST_CHECK_THROW(parallel_for(10, 1, [](int64_t, int64_t) { throw 1; }), int);
  }
  BOOST_TEST(threads() == before);
  std::atomic<int> hits{0};
  parallel_for(100, 1, [&](int64_t begin, int64_t end) { hits += static_cast<int>(end - begin); });
  BOOST_TEST(hits == 100);
  BOOST_CHECK_THROW(detail::RecordParallelLoops(0), Error);
}

BOOST_AUTO_TEST_SUITE_END()
