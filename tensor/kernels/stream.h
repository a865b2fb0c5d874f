// Kernels of a device's stream of work: waiting, transfers from and to the CPU, capture of kernels into a graph.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braid/tensor/graph.h"
#include "braid/tensor/kernels/kernel.h"

namespace braid {

// Launches of one kernel, or of products of one size; on the CPU calls of one entry of the table.
struct LaunchTime {
  std::string name;
  int64_t launches = 0;
  double milliseconds = 0;  // of all of them
};

struct StreamKernels {
  void (*synchronize)() = nullptr;                 // returns when the device has finished all enqueued work
  Kernel<"transfer", void(In x, Out y)> transfer;  // between this device and the CPU; contiguous, same dtype
  // For tensor/graph.h; empty where the device has no graphs.
  Kernel<"begin_capture", void()> begin_capture;
  Kernel<"end_capture", std::unique_ptr<DeviceGraph>()> end_capture;
  Kernel<"abort_capture", void()> abort_capture;  // throws nothing
  // For measurements: runs the work and returns the time of each of its launches, summed by name, in alphabetical
  // order. A GPU may wait for the host between short launches, and that time counts too. A kernel of the CPU that calls
  // another one counts without it; only those that this thread calls count.
  Kernel<"launch_times", std::vector<LaunchTime>(const std::function<void()>& work)> launch_times;
};

namespace cpu {
extern constinit const StreamKernels stream_kernels;  // tensor/cpu/stream.cpp
}
namespace cuda {
extern constinit const StreamKernels stream_kernels;  // cuda/runtime/stream.cpp
}

}  // namespace braid
