#include "braid/tensor/base/lock_at_fork.h"

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <thread>

using braid::detail::ForkLevel;
using braid::detail::lock_at_fork;

BOOST_AUTO_TEST_SUITE(lock_at_fork_suite)

// A thread holds a mutex of the first level, and takes one of the second while another thread forks: fork() must hold
// none of the second while it waits for the first, whatever the order in which they were named.
BOOST_AUTO_TEST_CASE(fork_takes_the_levels_in_the_order_of_threads) {
  static std::mutex second, first;  // fork() uses them to the end of the program
  lock_at_fork(second);
  lock_at_fork(first, ForkLevel::first);
  first.lock();
  std::thread forking([] {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    int status = 0;
    ::waitpid(child, &status, 0);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it waits for `first` by now, or soon
  bool taken = false;
  for (int i = 0; i < 500 && !(taken = second.try_lock()); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  BOOST_TEST(taken);
  if (taken) second.unlock();
  first.unlock();
  forking.join();
}

BOOST_AUTO_TEST_SUITE_END()
