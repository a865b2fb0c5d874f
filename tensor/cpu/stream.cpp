// The stream of the CPU: kernels have finished when they return, so nothing waits.
#include "braid/tensor/kernels/stream.h"

#include <chrono>
#include <cstring>
#include <map>

namespace braid::cpu {

namespace {

using Clock = std::chrono::steady_clock;

// The calls of this thread's launch_times().
struct CallTimes {
  std::map<std::string, LaunchTime> of;
  std::vector<const char*> running;  // the innermost last
  Clock::time_point since;           // it began, or went on after another one inside it

  void add_to_innermost() {
    const Clock::time_point now = Clock::now();
    if (!running.empty())
      of[running.back()].milliseconds += std::chrono::duration<double, std::milli>(now - since).count();
    since = now;
  }
};
thread_local CallTimes* timed = nullptr;

void enter(const char* kernel) {
  if (!timed) return;
  timed->add_to_innermost();
  timed->running.push_back(kernel);
  ++timed->of[kernel].launches;
}
void leave() {
  if (!timed || timed->running.empty()) return;  // a kernel that began before
  timed->add_to_innermost();
  timed->running.pop_back();
}

std::vector<LaunchTime> launch_times(const std::function<void()>& work) {
  CallTimes times;
  const ScopedValue<CallTimes*> here(timed, &times);
  struct Observing {
    detail::KernelObserver before = detail::set_kernel_observer({enter, leave});
    ~Observing() { detail::set_kernel_observer(before); }
  };
  {
    const Observing observing;
    work();
  }
  std::vector<LaunchTime> all;
  for (auto& [name, time] : times.of) all.push_back({name, time.launches, time.milliseconds});
  return all;
}

void transfer(In x, Out y) {
  if (x.numel() > 0) std::memcpy(y.mutable_raw(), x.raw(), static_cast<size_t>(x.numel() * size_of(x.dtype())));
}

}  // namespace

constinit const StreamKernels stream_kernels{.synchronize = [] {}, .transfer = transfer, .launch_times = launch_times};

}  // namespace braid::cpu
