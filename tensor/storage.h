// Storage: one buffer, freed by the allocator it came from.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "braid/tensor/device.h"
#include "braid/tensor/memory.h"

namespace braid {

// Allocates buffers aligned to 64 bytes. `release` gets the pointer and the size of an `allocate`.
class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual void* allocate(int64_t bytes) = 0;  // throws Error(setting) with the sizes when there is no memory
  virtual void release(void* data, int64_t bytes) noexcept = 0;
  virtual MemoryStats stats() const = 0;
  virtual void reset_peak() = 0;
  virtual void release_cached() = 0;
};
Allocator& allocator(Device device);

class Storage {
 public:
  Storage(int64_t bytes, Device device)
      : bytes_(bytes), device_(device), use_(detail::current_memory_use), data_(allocator(device).allocate(bytes)) {
    detail::count_memory(device_, use_, bytes_);
  }
  ~Storage() {
    detail::count_memory(device_, use_, -bytes_);
    allocator(device_).release(data_, bytes_);
  }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  std::byte* data() { return static_cast<std::byte*>(data_); }
  int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  // How often the contents were written in place, so that a derivative can tell whether what it saved is still there.
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void count_write() { version_.fetch_add(1, std::memory_order_relaxed); }
  void count_as(MemoryUse use) {
    if (use == use_) return;
    detail::count_memory(device_, use_, -bytes_);
    detail::count_memory(device_, use_ = use, bytes_);
  }

 private:
  int64_t bytes_;
  Device device_;
  MemoryUse use_;
  std::atomic<uint32_t> version_{0};
  void* data_;
};

}  // namespace braid
