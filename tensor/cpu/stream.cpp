// The stream of the CPU: kernels have finished when they return, so nothing waits.
#include "braid/tensor/kernels/stream.h"

#include <cstring>
#include <map>

#include "braid/tensor/kernels/kernel_meter.h"

namespace braid::cpu {

static void transfer(In x, Out y) {
  if (x.numel() > 0) std::memcpy(y.mutable_raw(), x.raw(), static_cast<size_t>(x.numel() * size_of(x.dtype())));
}

static std::vector<LaunchTime> launch_times(const std::function<void()>& work) {
  std::map<std::string, LaunchTime> sums;
  for (const KernelCall& call : record_kernel_calls(work)) {
    LaunchTime& sum = sums[std::string(call.name)];
    sum.name = call.name;
    ++sum.launches, sum.milliseconds += 1e3 * call.seconds;
  }
  std::vector<LaunchTime> times;
  for (const auto& [name, sum] : sums) times.push_back(sum);
  return times;
}

constinit const StreamKernels stream_kernels{.synchronize = [] {}, .transfer = transfer, .launch_times = launch_times};

}  // namespace braid::cpu
