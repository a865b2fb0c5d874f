#include "apps/cli/signals.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <iterator>
#include <mutex>
#include <system_error>
#include <thread>

namespace braid::apps {
namespace {

// Set by the thread that gets the signals, read by the others.
std::atomic<int> received = 0;
static_assert(std::atomic<int>::is_always_lock_free);  // a handler sets it
constexpr int listened[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};
std::array<struct sigaction, 5> previous;
std::mutex counting;
int alive = 0;

// Only async-signal-safe calls here.
void on_signal(int signal) {
  const int of_interrupted = errno;
  if (signal == SIGINT) {
    struct sigaction fallback {};
    fallback.sa_handler = SIG_DFL;
    sigaction(SIGINT, &fallback, nullptr);
  }
  received = signal;
  errno = of_interrupted;
}

sigset_t listened_set() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : listened) sigaddset(&set, signal);
  return set;
}

// Whether standard output is a pipe that nobody reads any more, and something was lost in it.
bool reader_has_gone() {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  pollfd end{.fd = ::fileno(stdout), .events = 0, .revents = 0};
  return !written && ::poll(&end, 1, 0) == 1 && (end.revents & POLLERR) != 0;
}

}  // namespace

StopSignals::StopSignals() {
  const std::lock_guard lock(counting);
  if (alive++ > 0) return;
  received = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  // A write in progress continues; the loop reads the flag soon enough. Threads of Python have a stack for handlers.
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < std::size(listened); ++i) {
    sigaction(listened[i], nullptr, &previous[i]);
    const bool by_nohup = listened[i] == SIGHUP && previous[i].sa_handler == SIG_IGN;
    if (!by_nohup) sigaction(listened[i], &action, nullptr);
  }
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &previous.back());
}

StopSignals::~StopSignals() {
  const std::lock_guard lock(counting);
  if (--alive > 0) return;
  for (size_t i = 0; i < std::size(listened); ++i) sigaction(listened[i], &previous[i], nullptr);
  received = 0;
  if (!reader_has_gone()) {
    sigaction(SIGPIPE, &previous.back(), nullptr);
  } else {  // SIGPIPE stays ignored: a message on stderr may go the same way
    std::fputs("note: the reader of standard output has gone; the lines after that are lost\n", stderr);
    if (!std::freopen("/dev/null", "w", stdout)) std::clearerr(stdout);
  }
}

bool StopSignals::requested() { return received != 0; }

const char* StopSignals::name() {
  switch (received) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGUSR1:
      return "SIGUSR1";
    case SIGHUP:
      return "SIGHUP";
    default:
      return "";
  }
}

void start_signal_thread() {
  const sigset_t set = listened_set();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  try {
    std::thread([set] {
      pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
      for (;;) ::pause();
    }).detach();
  } catch (const std::system_error&) {  // no more threads: better heard on this stack than not at all
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  }
}

void unblock_signals(posix_spawnattr_t& attributes) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  for (const int signal : listened) sigdelset(&mask, signal);
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
}

}  // namespace braid::apps
