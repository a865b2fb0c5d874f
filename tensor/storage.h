// Storage: one buffer, freed by the allocator it came from.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "braid/tensor/device.h"
#include "braid/tensor/memory.h"

namespace braid {

// Hands out buffers aligned to 64 bytes. `release` takes back what `allocate` gave, with the same size.
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
      : bytes_(bytes), device_(device), use_(detail::memory_use()), data_(allocator(device).allocate(bytes)) {
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
  void count_as(MemoryUse use) {
    if (use == use_) return;
    detail::count_memory(device_, use_, -bytes_);
    detail::count_memory(device_, use_ = use, bytes_);
  }

 private:
  int64_t bytes_;
  Device device_;
  MemoryUse use_;
  void* data_;
};

}  // namespace braid
