// Stopping on request: SIGINT, SIGTERM, SIGUSR1 and SIGHUP (unless it is ignored, as by nohup) set a flag that the
// training loop reads between steps.
#pragma once
#include <spawn.h>

namespace braid::apps {

// While it lives, the signals set the flag; a second SIGINT kills at once, as without a handler. SIGPIPE is ignored:
// a run must survive the death of the terminal or pipe that it prints to. At the end, output whose reader has gone
// (braid train ... | head -1) goes nowhere, with a note on stderr, and is no failure: the run has its log. Of several
// that live at a time, such as those of runs in threads, the first sets the handlers and the last brings the old ones
// back; a signal stops all.
//
// The handler runs on the stack of the thread that gets the signal: see start_signal_thread().
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  static bool requested();
  static const char* name();  // "SIGTERM", or "" when not requested
  // What stopped work on all ranks: the name, or that of nobody here.
  static const char* cause() { return requested() ? name() : "another process or the caller"; }
};

// Gives these signals a thread of their own that does nothing else; the calling thread, and all that it
// starts later, no longer get them. Computing threads must not: some kernels of oneDNN (2.6: narrow products in f32)
// keep data below the stack pointer, beyond the 128 bytes that a handler leaves alone there, so a handler on their
// stack overwrites numbers and addresses. To be called before any other thread exists.
void start_signal_thread();
// Programs started by posix_spawn with these attributes get the signals.
void unblock_signals(posix_spawnattr_t& attributes);

}  // namespace braid::apps
