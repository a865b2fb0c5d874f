// Storage: one buffer, freed by the allocator it came from, or memory of another owner, who gets it back.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

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
  // Memory of another owner, which no statistics count; `owner`, which may be null, keeps it alive until the last
  // tensor over it is gone.
  Storage(void* data, int64_t bytes, Device device, bool writable, std::shared_ptr<void> owner) noexcept
      : bytes_(bytes),
        device_(device),
        use_(MemoryUse::other),
        borrowed_(true),
        writable_(writable),
        data_(data),
        owner_(std::move(owner)) {}
  ~Storage() {
    if (borrowed_) {
      finish_reading();
    } else {
      detail::count_memory(device_, use_, -bytes_);
      allocator(device_).release(data_, bytes_);
    }
  }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  std::byte* data() { return static_cast<std::byte*>(data_); }
  int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  // How often the contents were written in place, so that a derivative can tell whether what it saved is still there.
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  // `op` stands in the error of a buffer that may not be written.
  void count_write(const char* op) {
    if (!writable_) [[unlikely]]
      read_only(op);
    version_.fetch_add(1, std::memory_order_relaxed);
  }
  bool borrowed() const { return borrowed_; }
  bool writable() const { return writable_; }
  void count_as(MemoryUse use) {
    if (use == use_ || borrowed_) return;
    detail::count_memory(device_, use_, -bytes_);
    detail::count_memory(device_, use_ = use, bytes_);
  }

 private:
  void finish_reading() const noexcept;
  [[noreturn]] static void read_only(const char* op);

  int64_t bytes_;
  Device device_;
  MemoryUse use_;
  bool borrowed_ = false, writable_ = true;
  std::atomic<uint32_t> version_{0};
  void* data_;
  std::shared_ptr<void> owner_;
};

}  // namespace braid
