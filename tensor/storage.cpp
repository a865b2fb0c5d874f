#include "braid/tensor/storage.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

#include "braid/tensor/base/integers.h"
#include "braid/tensor/base/lock_at_fork.h"
#include "braid/tensor/base/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/kernels/backend.h"
#include "braid/tensor/trace_device.h"

#if defined(__SANITIZE_ADDRESS__)
#define BRAID_CACHE_BUFFERS 0  // so that the sanitizer finds every use after free
#else
#define BRAID_CACHE_BUFFERS 1
#endif

namespace braid {

namespace {

// Freed buffers of 64 KiB or more are kept for reuse: a training step allocates the same sizes every time, and fresh
// memory from the system costs a page fault per 4 KiB, more than most kernels take to fill it.
//
// Such a buffer in use holds the map node that its release puts into the list of free ones, so that release() never
// needs memory and cannot fail.
class CpuAllocator final : public Allocator {
 public:
  CpuAllocator() { detail::lock_at_fork(mutex_); }

  void* allocate(int64_t bytes) override {
    int64_t size = rounded(bytes);
    std::lock_guard lock(mutex_);
    void* data = size >= kCacheFrom ? from_cache(size) : fresh_or_throw(size);
    current_ += size;
    peak_ = current_ > peak_ ? current_ : peak_;
    return data;
  }

  void release(void* data, int64_t bytes) noexcept override {
    int64_t size = rounded(bytes);
    std::lock_guard lock(mutex_);
    current_ -= size;
    if (size < kCacheFrom) return std::free(data);
    auto used = in_use_.find(data);
    cached_ += used->second.key();
    used->second.mapped().released = ++releases_;
    free_.insert(std::move(used->second));
    in_use_.erase(used);
    // The cache and the tensors together exceed the peak by a quarter at most, so that the process stays near its
    // true high-water mark. The quarter is needed because the buffers of forward and backward differ in size and
    // would evict each other at every step. What was released first goes first: it may be of a size that nobody needs
    // any more, where the buffer of this call is likely to be needed again.
    const int64_t max_reserved = BRAID_CACHE_BUFFERS ? peak_ + peak_ / 4 : 0;
    while (cached_ + current_ > max_reserved && !free_.empty())
      drop(std::ranges::min_element(free_, {}, [](const auto& buffer) { return buffer.second.released; }));
  }

  MemoryStats stats() const override {
    std::lock_guard lock(mutex_);
    return {current_, peak_, current_ + cached_};
  }
  void reset_peak() override {
    std::lock_guard lock(mutex_);
    peak_ = current_;
  }
  void release_cached() override {
    std::lock_guard lock(mutex_);
    release_all();
  }

 private:
  struct Buffer {
    void* data;
    uint64_t released;  // when, counted in releases
  };
  using Free = std::multimap<int64_t, Buffer>;     // by size
  using InUse = std::map<void*, Free::node_type>;  // buffer -> what release() puts into the list of free ones
  static constexpr int64_t kCacheFrom = 64 << 10, kLargeFrom = 1 << 20, kHugeFrom = 4 << 20;

  static int64_t rounded(int64_t bytes) {
    int64_t unit = bytes >= kLargeFrom ? 1 << 16 : 64;
    return bytes == 0 ? 64 : detail::round_up(bytes, unit);
  }
  static void* fresh(int64_t size) {
    int64_t alignment = size >= kHugeFrom ? 2 << 20 : size >= kLargeFrom ? 4096 : 64;
    void* data = nullptr;
    if (posix_memalign(&data, static_cast<size_t>(alignment), static_cast<size_t>(size)) != 0) return nullptr;
    if (size >= kHugeFrom) madvise(data, static_cast<size_t>(size), MADV_HUGEPAGE);  // a hint; failure costs only speed
    return data;
  }
  void* fresh_or_throw(int64_t size) {
    void* data = fresh(size);
    if (!data) {
      release_all();
      data = fresh(size);
    }
    if (!data)
      throw OutOfMemory("out of memory: cannot get " + detail::mebibytes(size) + "; " + detail::mebibytes(current_) +
                        " are in use by tensors");
    return data;
  }
  // A cached buffer of this size or little more, or a fresh one.
  void* from_cache(int64_t size) {
    const auto it = free_.lower_bound(size);
    if (it != free_.end() && it->first <= size + size / 8) {
      const auto used = in_use_.try_emplace(it->second.data).first;
      cached_ -= it->first;
      used->second = free_.extract(it);
      return used->first;
    }
    Free free{{size, {nullptr, 0}}};
    InUse one;
    one.try_emplace(nullptr, free.extract(free.begin()));
    void* data = fresh_or_throw(size);  // nothing below needs memory
    auto node = one.extract(one.begin());
    node.key() = node.mapped().mapped().data = data;
    in_use_.insert(std::move(node));
    return data;
  }
  void drop(Free::iterator it) {
    cached_ -= it->first;
    std::free(it->second.data);
    free_.erase(it);
  }
  void release_all() {
    while (!free_.empty()) drop(free_.begin());
  }

  mutable std::mutex mutex_;
  Free free_;
  InUse in_use_;
  int64_t current_ = 0, peak_ = 0, cached_ = 0;
  uint64_t releases_ = 0;
};

}  // namespace

Allocator& cpu_allocator() {
  if (TraceDevice* trace = TraceDevice::current()) [[unlikely]]
    return trace->allocator();
  // Never destroyed: tensors with static lifetime may outlive any static object declared here.
  static CpuAllocator* instance = new CpuAllocator;
  return *instance;
}

void Storage::read_only(const char* op) {
  fail(op, "the memory of this tensor is read-only, as its owner lent it: write to a clone()");
}

// Kernels of a GPU that use the memory may only be enqueued when its last tensor goes.
void Storage::finish_reading() const noexcept {
  if (device_.kind != Device::Kind::cuda) return;
  try {
    synchronize(device_);
  } catch (const Error&) {  // the next use of the device reports it
  }
}

Allocator& allocator(Device device) { return backend(device).allocator(); }
MemoryStats memory_stats(Device device) { return allocator(device).stats(); }
void reset_peak_memory(Device device) {
  allocator(device).reset_peak();
  detail::reset_memory_by_use(device);
}
void release_cached_memory(Device device) { allocator(device).release_cached(); }

}  // namespace braid
