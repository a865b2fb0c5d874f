// The emulated GPU's memory, streams and copies.
#include "braid/cuda/runtime/runtime.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "braid/cuda/runtime/graph.h"
#include "braid/cuda/runtime/launch_times.h"
#include "braid/cuda/runtime/messages.h"
#include "braid/tensor/kernels/backend.h"
#include "tests/cuda/emulation/engine.h"
#include "tests/cuda/emulation/gpu.h"
#include "tests/cuda/emulation/memory.h"

extern "C" {  // of the address sanitizer; null without it
__attribute__((weak)) void __asan_poison_memory_region(const volatile void* address, size_t size);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void* address, size_t size);
}

namespace braid {

namespace {

struct Buffer {
  size_t bytes;
  int pool;  // of the graph in whose capture it was allocated; 0: of none
  bool released;
};

std::mutex mutex;
std::map<void*, Buffer> buffers;  // the GPU's
int on_the_gpu = 0;               // depth of OnTheGpu
int pool = 0, pools = 0;
int64_t taken = 0;  // bytes of all buffers

void guard(void* data, size_t bytes) {
  if (on_the_gpu == 0 && __asan_poison_memory_region) __asan_poison_memory_region(data, bytes);
}
void unguard(void* data, size_t bytes) {
  if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(data, bytes);
}

// One heap block per tensor and of exactly its size, so that the address sanitizer checks its ends; filled with NaN, as
// a GPU's memory may well be.
class EmulatedAllocator final : public Allocator {
 public:
  void* allocate(int64_t bytes) override {
    const size_t size = static_cast<size_t>(bytes);
    std::lock_guard lock(mutex);
    const int64_t free = emulated::gpu().properties.memory - taken;
    void* data = nullptr;
    if (bytes > free || posix_memalign(&data, 256, size == 0 ? 1 : size) != 0)
      throw OutOfMemory(cuda::out_of_memory("the emulated GPU", {bytes, free, current_, taken - current_}));
    std::memset(data, 0xff, size);
    buffers[data] = {size, pool, false};
    taken += bytes;
    guard(data, size);
    current_ += bytes;
    peak_ = current_ > peak_ ? current_ : peak_;
    return data;
  }
  void release(void* data, int64_t bytes) noexcept override {
    std::lock_guard lock(mutex);
    current_ -= bytes;
    Buffer& buffer = buffers.at(data);
    buffer.released = true;
    if (buffer.pool != 0) return;  // a graph may still write to it
    unguard(data, buffer.bytes);
    buffers.erase(data);
    taken -= bytes;
    std::free(data);
  }
  MemoryStats stats() const override {
    std::lock_guard lock(mutex);
    return {current_, peak_, taken};
  }
  void reset_peak() override {
    std::lock_guard lock(mutex);
    peak_ = current_;
  }
  void release_cached() override {}

 private:
  int64_t current_ = 0, peak_ = 0;
};

}  // namespace

namespace emulated {

OnTheGpu::OnTheGpu() {
  std::lock_guard lock(mutex);
  if (on_the_gpu++ > 0) return;
  for (const auto& [data, buffer] : buffers) unguard(data, buffer.bytes);
}
OnTheGpu::~OnTheGpu() {
  std::lock_guard lock(mutex);
  if (--on_the_gpu > 0) return;
  for (const auto& [data, buffer] : buffers) guard(data, buffer.bytes);
}

int begin_pool() {
  std::lock_guard lock(mutex);
  return pool = ++pools;
}
void end_pool() {
  std::lock_guard lock(mutex);
  pool = 0;
}
void drop_pool(int dropped) {
  std::lock_guard lock(mutex);
  for (auto it = buffers.begin(); it != buffers.end();) {
    auto& [data, buffer] = *it;
    if (buffer.pool == dropped && buffer.released) {
      unguard(data, buffer.bytes);
      taken -= static_cast<int64_t>(buffer.bytes);
      std::free(data);
      it = buffers.erase(it);
      continue;
    }
    if (buffer.pool == dropped) buffer.pool = 0;
    ++it;
  }
}

Gpu& gpu() {
  static Gpu instance{.properties = {.name = "emulated GPU",
                                     .major = 9,
                                     .minor = 0,
                                     .multiprocessors = 4,
                                     .memory = int64_t{1} << 30,
                                     .shared_bytes = static_cast<int64_t>(kMaxSharedBytes)}};
  return instance;
}

}  // namespace emulated

int cuda_device_count() { return cuda::device_count(); }
std::string cuda_unsupported_reason(int index) { return cuda::unsupported_reason(index); }

namespace cuda {

// As the driver reports a kernel that failed: the next wait returns the error.
static void report_failure() {
  const std::string failure = std::exchange(emulated::gpu().failure, "");
  if (!failure.empty()) throw Error(ErrorKind::misuse, failed(failure));
}

int device_count() {
  const std::string& failure = emulated::gpu().no_driver;
  check(failure.empty(), ErrorKind::setting, [&] { return failure; });
  return emulated::gpu().count;
}
std::string unsupported_reason(int index) {
  if (!emulated::gpu().no_driver.empty()) return emulated::gpu().no_driver;
  return unsupported_reason(index, device_count(), &emulated::gpu().properties);
}
void use_device(int index) {
  const std::string reason = unsupported_reason(index);
  check(reason.empty(), ErrorKind::setting, [&] { return reason; });
}
int current_device() { return 0; }
StreamHandle current_stream() { return nullptr; }
void synchronize() { report_failure(); }
const Properties& properties() { return emulated::gpu().properties; }

void copy_to_device(void* to, const void* from, int64_t bytes) {
  const emulated::OnTheGpu on;
  std::memcpy(to, from, static_cast<size_t>(bytes));
}
void copy_to_host(void* to, const void* from, int64_t bytes) {
  report_failure();
  const emulated::OnTheGpu on;
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

// Nothing is timed: the launches are counted.
std::vector<LaunchTime> launch_times(const std::function<void()>& work) {
  check_not_capturing("launches were timed");
  const uint64_t before = emulated::statistics().launches;
  work();
  return {{"emulated kernels", static_cast<int64_t>(emulated::statistics().launches - before), 0}};
}

Allocator& device_allocator() {
  static EmulatedAllocator* instance = new EmulatedAllocator;  // never destroyed: tensors may be static
  return *instance;
}

}  // namespace cuda
}  // namespace braid
