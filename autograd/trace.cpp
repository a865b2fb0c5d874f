#include "braid/autograd/trace.h"

#include <chrono>
#include <utility>

namespace braid {

namespace {

struct Timeline {
  std::vector<TraceEvent> events;
  int64_t last = 0;  // end of the last event
};
thread_local Timeline timeline;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

TracePhase::TracePhase(const char* name) : name_(name), begin_(detail::tracing ? now() : 0) {
  if (detail::tracing) timeline.last = begin_;
}

TracePhase::~TracePhase() {
  if (!detail::tracing || begin_ == 0) return;
  timeline.last = now();
  timeline.events.push_back({name_, "phase", begin_, timeline.last, 0});
}

void start_trace() {
  timeline = {{}, now()};
  detail::tracing = true;
}

std::vector<TraceEvent> stop_trace() {
  detail::tracing = false;
  return std::move(timeline.events);
}

void detail::trace_event(std::string name, const char* kind, Device device) {
  if (!tracing) return;
  const int64_t end = now();
  timeline.events.push_back({std::move(name), kind, timeline.last, end, memory_stats(device).current});
  timeline.last = end;
}

}  // namespace braid
