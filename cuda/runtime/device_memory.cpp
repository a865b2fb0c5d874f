// The driver as the source of memory.
#include "braid/cuda/runtime/allocator.h"
#include "braid/cuda/runtime/check.h"
#include "braid/cuda/runtime/runtime.h"
#include "braid/tensor/error.h"

namespace braid::cuda {

namespace {

class DriverMemory final : public MemorySource {
 public:
  explicit DriverMemory(int device) : device_(device) {}
  void* get(int64_t bytes) override {
    const DeviceGuard guard(device_);
    // During a capture the driver rejects allocations, unless the mode says that they are no part of the graph.
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    check(cudaThreadExchangeStreamCaptureMode(&mode));
    void* data = nullptr;
    const cudaError_t status = cudaMalloc(&data, static_cast<size_t>(bytes));
    check(cudaThreadExchangeStreamCaptureMode(&mode));
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return nullptr;
    }
    check(status);
    return data;
  }
  void give_back(void* data) override {
    const DeviceGuard guard(device_);
    cudaStreamSynchronize(current_stream());
    cudaFree(data);  // a failure is ignored: the memory is freed with the process at the latest
  }
  int64_t free_bytes() override {
    const DeviceGuard guard(device_);
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total));
    return static_cast<int64_t>(free);
  }
  std::string name() override {
    const DeviceGuard guard(device_);
    return str("cuda:", device_, " (", properties().name, ")");
  }

 private:
  int device_;
};

}  // namespace

CachingAllocator& caching_allocator() {
  // Never destroyed: tensors with static lifetime may outlive any static object declared here.
  static std::mutex mutex;
  static auto* of = new std::map<int, CachingAllocator*>;
  const int device = current_device();
  std::lock_guard lock(mutex);
  CachingAllocator*& allocator = (*of)[device];
  if (!allocator) allocator = new CachingAllocator(std::make_unique<DriverMemory>(device), exact_allocations());
  return *allocator;
}

Allocator& device_allocator() { return caching_allocator(); }

}  // namespace braid::cuda
