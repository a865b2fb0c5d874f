// Stopping on request: SIGINT, SIGTERM and SIGUSR1 set a flag that the training loop reads between steps.
#pragma once

namespace braid::apps {

// While it lives, the signals set the flag; a second SIGINT kills at once, as without a handler. SIGPIPE is ignored:
// a run must survive the death of the terminal or pipe that it prints to. At the end, output whose reader has gone
// (braid train ... | head -1) goes nowhere, with a note on stderr, and is no failure: the run has its log. One at a
// time; the old handlers come back.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  static bool requested();
  static const char* name();  // "SIGTERM", or "" when not requested
};

}  // namespace braid::apps
