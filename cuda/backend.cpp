// The CUDA device's table of contents. Kernels live in cuda/kernels, in files named as those of tensor/cpu.
#include "tensor/backend.h"

#include "cuda/blas.h"
#include "cuda/graph.h"
#include "cuda/runtime.h"

namespace braid {

namespace cuda {
Allocator& device_allocator();  // cuda/allocator.cpp

static void not_in_a_graph(const char* what) {
  check(!capturing(), "graph", [&] {
    return std::string(what) + " while a graph is captured, but its kernels have not run yet; do it before or after";
  });
}

static void transfer(In x, Out y) {
  not_in_a_graph(x.device() == kCpu ? "values were brought to the card" : "values were read back");
  const int64_t bytes = x.numel() * size_of(x.dtype());
  if (bytes == 0) return;
  if (x.device() == kCpu) {
    copy_to_device(y.mutable_raw(), x.raw(), bytes);
  } else {
    copy_to_host(y.mutable_raw(), x.raw(), bytes);
  }
}

static void wait() {
  not_in_a_graph("the host waited for the card");
  synchronize();
}

static void matmul(In x, In z, bool accumulate, Out y) { product(x, z, 1, accumulate ? 1 : 0, y); }
}  // namespace cuda

const Backend& cuda_backend(int index) {
  static constexpr Backend table{
      .name = "cuda",
      .allocator = cuda::device_allocator,
      .synchronize = cuda::wait,
      .begin_capture = cuda::begin_capture,
      .end_capture = cuda::end_capture,
      .abort_capture = cuda::abort_capture,
      .transfer = cuda::transfer,
      .matmul = cuda::matmul,
  };
  cuda::use_device(index);
  return table;
}

}  // namespace braid
