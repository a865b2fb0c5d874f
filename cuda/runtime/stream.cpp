// The stream of a GPU: waiting, transfers between CPU and GPU, and capture.
#include "braid/tensor/kernels/stream.h"

#include "braid/cuda/runtime/graph.h"
#include "braid/cuda/runtime/launch_times.h"
#include "braid/cuda/runtime/runtime.h"

namespace braid::cuda {

void check_not_capturing(const char* action) {
  check(!capturing(), "graph", [&] {
    return str(action,
               " while a graph is captured, but its kernels have not run yet; do it before or after the capture");
  });
}

namespace {

void transfer(In x, Out y) {
  check_not_capturing(x.device() == kCpu ? "values were copied to the GPU" : "values were read back");
  const int64_t bytes = x.numel() * size_of(x.dtype());
  if (bytes == 0) return;
  if (x.device() == kCpu) {
    copy_to_device(y.mutable_raw(), x.raw(), bytes);
  } else {
    copy_to_host(y.mutable_raw(), x.raw(), bytes);
  }
}

void wait() {
  check_not_capturing("the CPU waited for the GPU");
  synchronize();
}

}  // namespace

constinit const StreamKernels stream_kernels{.synchronize = wait,
                                             .transfer = transfer,
                                             .begin_capture = begin_capture,
                                             .end_capture = end_capture,
                                             .abort_capture = abort_capture,
                                             .launch_times = launch_times};

}  // namespace braid::cuda
