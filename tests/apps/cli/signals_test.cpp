#include "apps/cli/signals.h"

#include <boost/test/unit_test.hpp>
#include <csignal>

#include "tests/apps/support.h"

using namespace braid::apps;

BOOST_AUTO_TEST_SUITE(stop)

BOOST_AUTO_TEST_CASE(signals_set_the_flag) {
  for (const auto& [signal, name] : {std::pair{SIGTERM, "SIGTERM"}, {SIGUSR1, "SIGUSR1"}, {SIGINT, "SIGINT"}}) {
    const StopSignals listening;
    BOOST_TEST(!StopSignals::requested());
    BOOST_TEST(StopSignals::name() == std::string());
    ::raise(signal);
    BOOST_TEST(StopSignals::requested());
    BOOST_TEST(StopSignals::name() == std::string(name));
    ::raise(SIGPIPE);  // ignored
  }
  BOOST_TEST(!StopSignals::requested());
}

// The signal that kills a child that gets these signals while it listens; 0: it lives.
static int fatal_signal(std::initializer_list<int> signals) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGINT, SIG_DFL);
    const StopSignals listening;
    for (const int signal : signals) ::raise(signal);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

BOOST_AUTO_TEST_CASE(a_second_interrupt_kills) {
  BOOST_TEST(fatal_signal({SIGINT}) == 0);
  BOOST_TEST(fatal_signal({SIGTERM, SIGTERM, SIGUSR1}) == 0);
  BOOST_TEST(fatal_signal({SIGINT, SIGINT}) == SIGINT);
}

BOOST_AUTO_TEST_SUITE_END()
