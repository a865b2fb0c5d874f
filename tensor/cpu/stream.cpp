// The stream of the CPU: kernels have finished when they return, so nothing waits.
#include "braid/tensor/kernels/stream.h"

#include <chrono>
#include <cstring>

#include "braid/tensor/kernels/kernel_meter.h"

namespace braid::cpu {

static void transfer(In x, Out y) {
  if (x.numel() > 0) std::memcpy(y.mutable_raw(), x.raw(), static_cast<size_t>(x.numel() * size_of(x.dtype())));
}

static std::vector<LaunchTime> launch_times(const std::function<void()>& work) {
  const auto milliseconds = [] {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  std::vector<LaunchTime> times;
  for (const auto& [name, time] : meter_kernels(milliseconds, work)) times.push_back({name, time.calls, time.amount});
  return times;
}

constinit const StreamKernels stream_kernels{.synchronize = [] {}, .transfer = transfer, .launch_times = launch_times};

}  // namespace braid::cpu
