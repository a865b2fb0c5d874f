#include "braid/tensor/storage.h"

#include <sys/mman.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

#include "braid/tensor/detail/integers.h"
#include "braid/tensor/detail/strings.h"
#include "braid/tensor/error.h"
#include "braid/tensor/kernels/backend.h"

#if defined(__SANITIZE_ADDRESS__)
#define BRAID_CACHE_BUFFERS 0  // so that the sanitizer finds every use after free
#else
#define BRAID_CACHE_BUFFERS 1
#endif

namespace braid {

namespace {

// Freed buffers of a megabyte or more are kept for reuse: a training step allocates the same sizes every time, and
// fresh memory from the system costs a page fault per 4 KiB, more than most kernels take to fill it.
class CpuAllocator final : public Allocator {
 public:
  void* allocate(int64_t bytes) override {
    int64_t size = rounded(bytes);
    std::lock_guard lock(mutex_);
    current_ += size;
    peak_ = current_ > peak_ ? current_ : peak_;
    if (size >= kCacheFrom) {
      auto it = free_.lower_bound(size);
      if (it != free_.end() && it->first <= size + size / 8) {
        void* data = it->second;
        slack_[data] = it->first;
        cached_ -= it->first;
        free_.erase(it);
        return data;
      }
    }
    void* data = fresh(size);
    if (!data) {
      release_all();
      data = fresh(size);
    }
    if (!data) {
      current_ -= size;
      throw OutOfMemory("out of memory: cannot get " + detail::mebibytes(bytes) + "; " + detail::mebibytes(current_) +
                        " are in use by tensors; lower the batch size, the sequence length or the model");
    }
    return data;
  }

  void release(void* data, int64_t bytes) noexcept override {
    int64_t size = rounded(bytes);
    std::lock_guard lock(mutex_);
    current_ -= size;
    auto it = slack_.find(data);
    int64_t real = size;
    if (it != slack_.end()) {
      real = it->second;
      slack_.erase(it);
    }
    if (BRAID_CACHE_BUFFERS && real >= kCacheFrom) {
      free_.emplace(real, data);
      cached_ += real;
      // The cache and the tensors together exceed the peak by a quarter at most, so that the process stays near its
      // true high-water mark. The quarter is needed because the buffers of forward and backward differ in size and
      // would evict each other at every step.
      while (cached_ + current_ > peak_ + peak_ / 4 && !free_.empty()) drop(std::prev(free_.end()));
    } else {
      std::free(data);
    }
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
  static constexpr int64_t kCacheFrom = 1 << 20, kHugeFrom = 4 << 20;

  static int64_t rounded(int64_t bytes) {
    int64_t unit = bytes >= kCacheFrom ? 1 << 16 : 64;
    return bytes == 0 ? 64 : detail::round_up(bytes, unit);
  }
  static void* fresh(int64_t size) {
    int64_t alignment = size >= kHugeFrom ? 2 << 20 : size >= kCacheFrom ? 4096 : 64;
    void* data = nullptr;
    if (posix_memalign(&data, static_cast<size_t>(alignment), static_cast<size_t>(size)) != 0) return nullptr;
    if (size >= kHugeFrom) madvise(data, static_cast<size_t>(size), MADV_HUGEPAGE);  // a hint; failure costs only speed
    return data;
  }
  void drop(std::multimap<int64_t, void*>::iterator it) {
    cached_ -= it->first;
    std::free(it->second);
    free_.erase(it);
  }
  void release_all() {
    while (!free_.empty()) drop(free_.begin());
  }

  mutable std::mutex mutex_;
  std::multimap<int64_t, void*> free_;  // size -> buffer
  std::map<void*, int64_t> slack_;      // true size of buffers that serve a smaller request
  int64_t current_ = 0, peak_ = 0, cached_ = 0;
};

}  // namespace

Allocator& cpu_allocator() {
  // Never destroyed: tensors with static lifetime may outlive any static object declared here.
  static CpuAllocator* instance = new CpuAllocator;
  return *instance;
}

Allocator& allocator(Device device) { return backend(device).allocator(); }
MemoryStats memory_stats(Device device) { return allocator(device).stats(); }
void reset_peak_memory(Device device) {
  allocator(device).reset_peak();
  detail::reset_memory_by_use(device);
}
void release_cached_memory(Device device) { allocator(device).release_cached(); }

}  // namespace braid
