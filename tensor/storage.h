// Storage: one buffer, freed by the allocator it came from.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tensor/device.h"

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
  Storage(int64_t bytes, Device device) : bytes_(bytes), device_(device), data_(allocator(device).allocate(bytes)) {}
  ~Storage() { allocator(device_).release(data_, bytes_); }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  std::byte* data() { return static_cast<std::byte*>(data_); }
  int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }

 private:
  int64_t bytes_;
  Device device_;
  void* data_;
};

}  // namespace braid
