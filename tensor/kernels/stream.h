// Kernels of a device's stream of work: waiting, transfers from and to the CPU, capture of kernels into a graph.
#pragma once
#include <memory>

#include "braid/tensor/graph.h"
#include "braid/tensor/kernels/kernel.h"

namespace braid {

struct StreamKernels {
  void (*synchronize)() = nullptr;                 // returns when the device has finished all enqueued work
  Kernel<"transfer", void(In x, Out y)> transfer;  // between this device and the CPU; contiguous, same dtype
  // For tensor/graph.h; empty where the device has no graphs.
  Kernel<"begin_capture", void()> begin_capture;
  Kernel<"end_capture", std::unique_ptr<DeviceGraph>()> end_capture;
  Kernel<"abort_capture", void()> abort_capture;  // throws nothing
};

namespace cpu {
extern constinit const StreamKernels stream_kernels;  // tensor/cpu/stream.cpp
}
namespace cuda {
extern constinit const StreamKernels stream_kernels;  // cuda/runtime/stream.cpp
}

}  // namespace braid
