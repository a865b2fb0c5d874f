// The CUDA device's table of contents. Kernels live in cuda/kernels, in files named as those of tensor/cpu.
#include "tensor/backend.h"

#include "cuda/blas.h"
#include "cuda/runtime.h"

namespace braid {

namespace cuda {
Allocator& device_allocator();  // cuda/allocator.cpp

static void transfer(In x, Out y) {
  const int64_t bytes = x.numel() * size_of(x.dtype());
  if (bytes == 0) return;
  if (x.device() == kCpu) {
    copy_to_device(y.mutable_raw(), x.raw(), bytes);
  } else {
    copy_to_host(y.mutable_raw(), x.raw(), bytes);
  }
}

static void matmul(In x, In z, bool accumulate, Out y) { product(x, z, 1, accumulate ? 1 : 0, y); }
}  // namespace cuda

const Backend& cuda_backend(int index) {
  static constexpr Backend table{
      .name = "cuda",
      .allocator = cuda::device_allocator,
      .synchronize = cuda::synchronize,
      .transfer = cuda::transfer,
      .matmul = cuda::matmul,
  };
  cuda::use_device(index);
  return table;
}

}  // namespace braid
