#include "apps/cli/signals.h"

#include <csignal>

#include <array>
#include <iterator>

namespace braid::apps {
namespace {

volatile std::sig_atomic_t received = 0;
constexpr int listened[] = {SIGINT, SIGTERM, SIGUSR1};
std::array<struct sigaction, 4> previous;

// Only async-signal-safe calls here.
void on_signal(int signal) {
  if (signal == SIGINT) {
    struct sigaction fallback {};
    fallback.sa_handler = SIG_DFL;
    sigaction(SIGINT, &fallback, nullptr);
  }
  received = signal;
}

}  // namespace

StopSignals::StopSignals() {
  received = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // a write in progress continues; the loop reads the flag soon enough
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < std::size(listened); ++i) sigaction(listened[i], &action, &previous[i]);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &previous.back());
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < std::size(listened); ++i) sigaction(listened[i], &previous[i], nullptr);
  sigaction(SIGPIPE, &previous.back(), nullptr);
  received = 0;
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
    default:
      return "";
  }
}

}  // namespace braid::apps
