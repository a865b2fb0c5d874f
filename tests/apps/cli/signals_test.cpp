#include "apps/cli/signals.h"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <thread>

#include "tests/apps/support.h"

using namespace braid::apps;

BOOST_AUTO_TEST_SUITE(stop)

BOOST_AUTO_TEST_CASE(signals_set_the_flag) {
  for (const auto& [signal, name] :
       {std::pair{SIGTERM, "SIGTERM"}, {SIGUSR1, "SIGUSR1"}, {SIGHUP, "SIGHUP"}, {SIGINT, "SIGINT"}}) {
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

BOOST_AUTO_TEST_CASE(the_last_of_several_brings_the_old_handlers_back) {
  struct sigaction before {
  }, after{};
  ::sigaction(SIGTERM, nullptr, &before);
  auto first = std::make_unique<StopSignals>(), second = std::make_unique<StopSignals>();
  ::raise(SIGTERM);
  first.reset();
  BOOST_TEST(StopSignals::requested());
  second.reset();
  ::sigaction(SIGTERM, nullptr, &after);
  BOOST_TEST((after.sa_handler == before.sa_handler));
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

// Threads of the process that do not block the signal.
static std::set<pid_t> listeners(pid_t process, int signal) {
  std::set<pid_t> found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("SigBlk:")) continue;
      const uint64_t blocked = std::stoull(line.substr(7), nullptr, 16);
      if ((blocked >> (signal - 1) & 1) == 0) found.insert(static_cast<pid_t>(std::stol(task.path().filename())));
    }
  }
  return found;
}

// A handler on the stack of a computing thread overwrites what kernels of oneDNN keep below the stack pointer.
BOOST_AUTO_TEST_CASE(computing_threads_do_not_get_the_signals) {
  braid::test::Process program({"bench", "--preset", "dcformer-tiny", "--batch", "1", "--seq-len", "64", "--threads",
                                "2", "--steps", "1000000"});
  const auto tasks = [&] {
    return std::distance(std::filesystem::directory_iterator("/proc/" + std::to_string(program.id()) + "/task"), {});
  };
  for (int i = 0; i < 400 && tasks() < 3; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(25));
  BOOST_TEST(tasks() >= 3);  // main, signals, a second computing thread
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    const std::set<pid_t> found = listeners(program.id(), signal);
    BOOST_TEST(found.size() == 1U);
    BOOST_TEST(!found.contains(program.id()));
  }
  program.signal(SIGTERM);  // still ends it
  BOOST_TEST(program.wait().code == -1);
}

BOOST_AUTO_TEST_SUITE_END()
