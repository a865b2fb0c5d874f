#include "braid/tensor/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <limits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "braid/tensor/base/float_mode.h"
#include "braid/tensor/pin_threads.h"
#include "tests/support/compare.h"
#include "tests/support/in_child.h"
#include "tests/support/sanitizer.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(cpu_parallel)

namespace {
struct Threads {  // sets the number of threads while it lives
  explicit Threads(int n) : before(threads()) { set_threads(n); }
  ~Threads() { set_threads(before); }
  int before;
};

int64_t sum() {  // 499500, by all threads
  std::atomic<int64_t> total{0};
  parallel_for(1000, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) total += i;
  });
  return total;
}
}  // namespace

// The processors that the pool's threads may run on, but not the caller's: all threads meet in one call.
std::vector<std::set<int>> processors_of_workers() {
  const std::thread::id caller = std::this_thread::get_id();
  std::vector<std::set<int>> found;
  std::mutex mutex;
  std::atomic<int> arrived{0};
  parallel_for(threads(), 1, [&](int64_t, int64_t) {
    for (++arrived; arrived < threads();) std::this_thread::yield();
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    std::set<int> allowed;
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) allowed.insert(i);
    const std::lock_guard lock(mutex);
    if (std::this_thread::get_id() != caller) found.push_back(allowed);
  });
  return found;
}

BOOST_AUTO_TEST_CASE(pinned_threads_stay_on_processors_of_their_own) {
  const int processors = static_cast<int>(std::min(4u, std::thread::hardware_concurrency()));
  const Threads use(processors);
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  if (processors < 2 || CPU_COUNT(&set) < processors) return;
  for (const bool pinned : {true, false}) {
    pin_threads(pinned);
    const auto found = processors_of_workers();
    std::set<std::set<int>> distinct(found.begin(), found.end());
    BOOST_TEST(std::ssize(found) == processors - 1);
    for (const std::set<int>& allowed : found) BOOST_TEST(std::ssize(allowed) == (pinned ? 1 : CPU_COUNT(&set)));
    if (pinned) BOOST_TEST(std::ssize(distinct) == processors - 1);
    BOOST_TEST(sum() == 499500);
  }
  sched_getaffinity(0, sizeof set, &set);
  BOOST_TEST(CPU_COUNT(&set) >= processors);  // the caller's
  pin_threads(true);
  set_threads(CPU_COUNT(&set) + 1);  // more than processors: none is pinned
  for (const std::set<int>& allowed : processors_of_workers()) BOOST_TEST(std::ssize(allowed) == CPU_COUNT(&set));
  pin_threads(false);
  const auto pin_inside = [] { parallel_for(100, 1, [](int64_t, int64_t) { pin_threads(true); }); };
  BOOST_TEST(throws_with(pin_inside, "cannot be pinned inside a body of parallel_for"));
}

// It used to wait for itself for ever.
BOOST_AUTO_TEST_CASE(threads_cannot_be_set_inside_a_body) {
  Threads use(2);
  const auto set_inside = [] { parallel_for(100, 1, [](int64_t, int64_t) { set_threads(3); }); };
  BOOST_TEST(throws_with(set_inside, "[threads] cannot be set inside a body of parallel_for"));
  BOOST_TEST(threads() == 2);
}

BOOST_AUTO_TEST_CASE(every_index_once_at_any_thread_count) {
  for (int t = 1; t <= 4; ++t) {
    Threads use(t);
    BOOST_TEST(threads() == t);
    for (int64_t n : {0, 1, 2, 7, 64, 1000}) {
      for (int64_t grain : {0, 1, 3, 64, 5000}) {
        std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
        parallel_for(n, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
        });
        int wrong = 0;
        for (auto& h : hits) wrong += h != 1;
        BOOST_TEST(wrong == 0);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(every_task_once_and_no_worker_with_two_at_a_time) {
  for (int t = 1; t <= 4; ++t) {
    Threads use(t);
    for (int64_t n : {0, 1, 2, 7, 300}) {
      for (int64_t workers : {1, 2, 5}) {
        std::vector<std::atomic<int>> hits(static_cast<size_t>(n)), busy(static_cast<size_t>(workers));
        std::atomic<int> wrong{0};
        parallel_tasks(n, workers, [&](int64_t task, int64_t worker) {
          if (worker < 0 || worker >= workers) {
            ++wrong;
            return;
          }
          wrong += busy[static_cast<size_t>(worker)]++ != 0;
          ++hits[static_cast<size_t>(task)];
          --busy[static_cast<size_t>(worker)];
        });
        for (auto& h : hits) wrong += h != 1;
        BOOST_TEST(wrong == 0);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_task_may_wait_for_the_one_before) {
  Threads use(3);
  std::atomic<int64_t> done{0};
  parallel_tasks(200, threads(), [&](int64_t task, int64_t) {
    while (done < task) std::this_thread::yield();
    done = task + 1;
  });
  BOOST_TEST(done == 200);
}

BOOST_AUTO_TEST_CASE(exceptions_reach_the_caller_and_the_pool_survives) {
  Threads use(3);
  for (int round = 0; round < 20; ++round) {
    BOOST_CHECK_EXCEPTION(parallel_for(100, 1,
                                       [&](int64_t begin, int64_t end) {
                                         if (begin <= 37 && 37 < end) throw std::runtime_error("at 37");
                                       }),
                          std::runtime_error,
                          [](const std::runtime_error& e) { return e.what() == std::string("at 37"); });
    std::atomic<int64_t> sum{0};
    parallel_for(100, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    BOOST_TEST(sum == 100);
  }
}

BOOST_AUTO_TEST_CASE(nested_calls_run_in_place) {
  Threads use(3);
  std::atomic<int64_t> sum{0};
  std::atomic<int> moved{0};
  parallel_for(8, 1, [&](int64_t begin, int64_t end) {
    std::thread::id self = std::this_thread::get_id();
    parallel_for(100, 1, [&](int64_t b, int64_t e) {
      moved += std::this_thread::get_id() != self;
      sum += (end - begin) * (e - b);
    });
  });
  BOOST_TEST(sum == 800);
  BOOST_TEST(moved == 0);
}

BOOST_AUTO_TEST_CASE(several_callers_at_once) {
  Threads use(2);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) parallel_for(64, 1, [&](int64_t b, int64_t e) { sum += e - b; });
    });
  }
  for (std::thread& t : callers) t.join();
  BOOST_TEST(sum == 3 * 50 * 64);
}

// Waiting threads sleep after a while, workers between two jobs and the caller behind its own pieces: each is woken.
BOOST_AUTO_TEST_CASE(threads_that_sleep_are_woken) {
  Threads use(2);
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  const auto start = std::chrono::steady_clock::now();
  const auto patient = [&] { return std::chrono::steady_clock::now() - start < std::chrono::seconds(60); };
  for (int round = 0; round < 20; ++round) {
    pause();
    std::atomic<int> inside{0}, together{0};
    const std::thread::id caller = std::this_thread::get_id();
    parallel_for(2, 1, [&](int64_t begin, int64_t end) {
      inside += static_cast<int>(end - begin);
      while (inside < 2 && patient()) std::this_thread::yield();  // each thread has one of the two indices
      together += inside == 2 && end - begin == 1;
      if (std::this_thread::get_id() != caller) pause();
    });
    BOOST_TEST(together == 2);
  }
}

// The thread sanitizer watches this one: a caller may ask for the size while another thread resizes the pool.
BOOST_AUTO_TEST_CASE(callers_go_on_while_the_pool_is_resized) {
  Threads use(2);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) parallel_for(64, 1, [&](int64_t b, int64_t e) { sum += e - b; });
    });
  }
  for (int round = 0; round < 20; ++round) set_threads(1 + round % 4);
  for (std::thread& t : callers) t.join();
  BOOST_TEST(sum == 3 * 200 * 64);
}

// The child has none of its parent's workers. It used to wait for them for ever.
BOOST_AUTO_TEST_CASE(the_child_of_a_fork_has_workers_of_its_own, *boost::unit_test::enable_if<!kThreadSanitizer>()) {
  Threads use(3);
  BOOST_TEST(sum() == 499500);  // the parent's workers run
  BOOST_TEST(in_child([] {
    const bool right = sum() == 499500 && threads() == 3;
    set_threads(2);
    return right && sum() == 499500;
  }));
  BOOST_TEST(sum() == 499500);
}

// Its workers must not take the order to stop for theirs that the parent's got when it forked. Not under a sanitizer:
// the locks of its allocator, which the parent's other thread may hold, stay locked in the child.
BOOST_AUTO_TEST_CASE(the_child_of_a_fork_while_threads_are_set_has_two,
                     *boost::unit_test::enable_if<!kThreadSanitizer && !kAddressSanitizer>()) {
  Threads use(2);
  std::atomic<bool> enough{false};
  std::thread other([&] {
    for (int n = 2; !enough; n = 5 - n) set_threads(n);
  });
  const auto two_meet = [] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    std::atomic<int> here{0};
    parallel_for(2, 1, [&](int64_t, int64_t) {
      for (++here; here < 2 && std::chrono::steady_clock::now() < end;) std::this_thread::yield();
    });
    return std::chrono::steady_clock::now() < end;
  };
  bool all = true;
  for (int i = 0; i < 20 && all; ++i) all = in_child(two_meet);
  enough = true;
  other.join();
  BOOST_TEST(all);
}

// Every thread would get a stack larger than the address space: the system starts none.
BOOST_AUTO_TEST_CASE(threads_that_cannot_be_started_are_done_without) {
  Threads use(2);
  pthread_attr_t before, huge;
  pthread_attr_init(&huge);
  BOOST_REQUIRE(pthread_getattr_default_np(&before) == 0);
  BOOST_REQUIRE(pthread_attr_setstacksize(&huge, size_t{1} << 48) == 0);
  BOOST_REQUIRE(pthread_setattr_default_np(&huge) == 0);
  set_threads(4);
  BOOST_TEST(threads() == 1);
  BOOST_TEST(sum() == 499500);
  BOOST_REQUIRE(pthread_setattr_default_np(&before) == 0);
  set_threads(4);
  BOOST_TEST(threads() == 4);
  BOOST_TEST(sum() == 499500);
}

// Otherwise the bits would depend on the thread that a piece of the work went to.
BOOST_AUTO_TEST_CASE(workers_take_over_the_floating_point_mode_of_the_caller) {
#if defined(__x86_64__)
  Threads use(3);
  constexpr uint64_t kFlushToZero = 0x8000;
  for (uint64_t mode : {kFlushToZero, uint64_t{0}}) {
    detail::set_float_mode(mode);
    volatile double smallest = std::numeric_limits<double>::min();
    std::atomic<int> zeros{0};
    parallel_for(3000, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) zeros += smallest / 2 == 0;
    });
    BOOST_TEST(zeros == (mode == 0 ? 0 : 3000));
    BOOST_TEST(detail::restore_float_mode() == (mode != 0));
  }
#endif
}

BOOST_AUTO_TEST_CASE(no_threads_is_rejected) {
  BOOST_TEST(throws_with([] { set_threads(0); }, "[threads] needs at least one thread, got 0"));
}

BOOST_AUTO_TEST_SUITE_END()
