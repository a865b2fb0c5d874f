// A timeline of what a thread computes: its ops, derivatives and transfers, each with the memory of tensors at its end.
// An op has no clock of its own: its event begins where the one before it on the thread ended. On a GPU the times are
// those of launches. Costs nothing but a test of a flag while it is off.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "braid/tensor/device.h"

namespace braid {

struct TraceEvent {
  std::string name;    // "matmul", "all_reduce"
  const char* kind;    // "op"; "derivative", also ops in closures; "transfer"; "phase"
  int64_t begin, end;  // nanoseconds of the system's clock, which the processes of a machine share
  int64_t bytes;       // of tensors in the memory of the computing device at the end
};

// A phase while it lives, around the events of others: TracePhase phase("update");
class TracePhase {
 public:
  explicit TracePhase(const char* name);
  ~TracePhase();
  TracePhase(const TracePhase&) = delete;

 private:
  const char* name_;
  int64_t begin_;
};

// Starts a timeline on this thread, or starts it anew.
void start_trace();
// Ends it and returns its events by their ends; empty where none was started.
std::vector<TraceEvent> stop_trace();

namespace detail {
inline thread_local bool tracing = false;
// An event from the end of the last one until now, where this thread has a timeline.
void trace_event(std::string name, const char* kind, Device device);
}  // namespace detail

}  // namespace braid
